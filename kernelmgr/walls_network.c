// SPDX-License-Identifier: MIT
#include "kernelmgr/walls_network.h"

#include "kernelmgr/landlock.h"
#include "wire/log.h"

int network_decide(struct walls *self, char *const env[], struct err *err)
{
	self->network = (enum network)self->config->network;
	if (self->network != NETWORK_AUTO && self->network != NETWORK_PROXY)
		return 0;
	if (proxy_find(&self->proxy, env, err) < 0)
		return config_blame(self->config, "network", err);
	if (self->network == NETWORK_AUTO)
		self->network = self->proxy.host[0] ? NETWORK_PROXY : NETWORK_HOST;
	if (self->network == NETWORK_PROXY && !self->proxy.host[0])
		return err_set(err, ERR_CONFIG,
			       "%s=proxy needs the proxy's address in http_proxy",
			       config_name(self->config, "network"));
	return 0;
}

/* auto promises nothing. */
static bool is_promised(const struct walls *self)
{
	return self->config->network != NETWORK_AUTO;
}

int network_fits(struct walls *self, struct err *err)
{
	if (self->tier == 'N' || self->network != NETWORK_PROXY ||
	    landlock_abi() >= LANDLOCK_ABI_PORTS)
		return 0;
	if (is_promised(self))
		return err_set(err, ERR_CONFIG,
			       "its Landlock cannot keep kernels to the proxy (Linux "
			       "6.7 and newer can)");
	self->network = NETWORK_HOST;
	return 0;
}

int network_settle(struct walls *self, struct err *err)
{
	static const char *const names[] = {"", "none", "proxy", "host"};

	if (self->network == NETWORK_HOST || self->tier == 'N')
		return 0;
	if (self->tier != '0') {
		if (self->network == NETWORK_PROXY)
			proxy_resolve(&self->proxy); /* they can ask no name server */
		return 0;
	}
	if (self->config->walls == WALLS_OFF) {
		log_warn("walls",
			 "without walls network %s is not enforced: kernels reach "
			 "whatever this machine does",
			 names[self->network]);
		return 0;
	}
	if (!is_promised(self)) {
		self->network = NETWORK_HOST;
		return 0;
	}
	return err_set(err, ERR_CONFIG,
		       "%s=%s cannot be kept here (%.110s); VIVARIUM_WALLS=off starts "
		       "without",
		       config_name(self->config, "network"), names[self->network],
		       self->why);
}
