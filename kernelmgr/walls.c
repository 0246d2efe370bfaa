// SPDX-License-Identifier: MIT
#include "kernelmgr/walls.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernelmgr/landlock.h"
#include "kernelmgr/plan.h"
#include "wire/mem.h"

/* How a kernel in tier N sees its own. */
#define VIEW_WORKDIR "/workspace"
#define VIEW_RUNTIME "/run/kernel"
#define VIEW_STORE "/run/state"
#define VIEW_COPY "/copy"

#define SYSTEM_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* What of /etc a program may want to read; never the whole of it. */
static const char *const etc[] = {
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "timezone",
    "nsswitch.conf",
    "hosts",
    "host.conf",
    "gai.conf",
    "resolv.conf",
    "services",
    "protocols",
    "networks",
    "ssl/certs",
    "ssl/openssl.cnf",
    "ca-certificates",
    "ca-certificates.conf",
    "pki",
    "fonts",
    "matplotlibrc",
    "mime.types",
    "alternatives",
    "python3",
    "python3.11",
    "python3.12",
    "python3.13",
    "pip.conf",
    "debian_version",
    "os-release",
    "locale.alias",
    "locale.conf",
    "magic",
    "mailcap",
    "terminfo",
    "inputrc",
    "bash.bashrc",
    "shells",
    "papersize",
    "texmf",
    "ImageMagick-6",
    "R",
    "gitconfig",
    "ghostscript",
    "OpenCL",
    "java-17-openjdk",
};

/* Besides: data of programs in /usr, and how many processors there are. */
static const char *const elsewhere[] = {
    "/var/cache/fontconfig",   "/var/lib/texmf",           "/var/lib/ghostscript",
    "/sys/devices/system/cpu", "/sys/devices/system/node",
};

static const char *const system_dirs[] = {"/bin",   "/sbin",  "/lib",
					  "/lib32", "/lib64", "/libx32"};

/* ---- views ---- */

static void set(char out[PATH_MAX], const char *path)
{
	snprintf(out, PATH_MAX, "%s", path);
}

const char *walls_shown_runtime(const struct walls *self, const char *dir)
{
	return self->tier == 'N' ? VIEW_RUNTIME : dir;
}

const char *walls_shown_workdir(const struct walls *self, const char *dir)
{
	return self->tier == 'N' ? VIEW_WORKDIR : dir;
}

void walls_view(const struct walls *self, const struct walls_kernel *kernel,
		struct walls_view *out)
{
	bool inside = self->tier == 'N';

	*out = (struct walls_view){.fixed = inside, .peer = inside ? 0 : getpid()};
	set(out->workdir, walls_shown_workdir(self, kernel->workdir));
	set(out->home, inside ? WALLS_HOME : kernel->home);
	set(out->runtime_dir, walls_shown_runtime(self, kernel->runtime_dir));
	if (inside)
		set(out->tmp, "/tmp");
	else
		snprintf(out->tmp, PATH_MAX, "%.4000s/tmp", kernel->runtime_dir);
	if (kernel->store) {
		set(out->store, inside ? VIEW_STORE : kernel->store);
		set(out->spool, inside ? VIEW_STORE "/spool" : kernel->spool);
	}
	if (kernel->copy)
		set(out->copy, inside ? VIEW_COPY : kernel->copy);
}

/* ---- tier U ---- */

int walls_owner(const struct walls *self, const char *workspace, uid_t *out,
		struct err *err)
{
	char name[NAME_MAX + 1];

	*out = 0;
	/* A branch is its user's. */
	snprintf(name, sizeof name, "%.*s", (int)strcspn(workspace, "@"), workspace);
	return self->owners ? owners_find(self->owners, name, out, err) : 0;
}

int walls_give(uid_t owner, const char *dir, const char *root, struct err *err)
{
	return owner ? owners_give(owner, dir, root, err) : 0;
}

void walls_finish(struct walls *self)
{
	owners_close(&self->owners);
}

/* ---- plans ---- */

struct plan_text {
	const struct walls *walls;
	struct buf *out;
	char bad[160]; /* a path that cannot be written down */
};

static void add(struct plan_text *self, const char *kind, const char *from,
		const char *to)
{
	if (from[strcspn(from, "\t\n")] || to[strcspn(to, "\t\n")])
		snprintf(self->bad, sizeof self->bad, "%s", from);
	buf_printf(self->out, "%s\t%s\t%s\n", kind, from,
		   self->walls->tier == 'N' || strcmp(kind, "link") == 0 ? to : from);
}

/* Ours, or a person's: where kernels are somebody else, its owner must be mapped if not
 * everybody may read it. */
static void add_readable(struct plan_text *self, const char *path)
{
	struct stat st;
	bool closed = self->walls->become && stat(path, &st) == 0 &&
		      (st.st_mode & 05) != (S_ISDIR(st.st_mode) ? 05u : 04u);

	add(self, closed ? "own" : "opt", path, path);
}

static void add_list(struct plan_text *self, const char *list, const char *separators)
{
	char *copy = xstrdup(list), *rest = copy, *path;

	while ((path = strsep(&rest, separators)))
		if (*path)
			add_readable(self, path);
	free(copy);
}

static bool is_within(const char *path, const char *dirs)
{
	for (size_t len; *dirs; dirs += len + (dirs[len] != '\0')) {
		len = strcspn(dirs, "\t");
		if (len && strncmp(path, dirs, len) == 0 && path[len] == '/')
			return true;
	}
	return false;
}

static void add_interpreter(struct plan_text *self)
{
	const struct launch_paths *paths = self->walls->paths;

	add_list(self, paths->python_dirs, "\t");
	if (!is_within(paths->python, "/usr") &&
	    !is_within(paths->python, paths->python_dirs))
		add_readable(self, paths->python); /* a script that stands for one */
	add_readable(self, paths->pyside);
}

static void add_system(struct plan_text *self)
{
	char path[PATH_MAX + 16], target[PATH_MAX];

	add(self, "ro", "/usr", "/usr");
	for (size_t i = 0; i < COUNT_OF(system_dirs); i++) {
		ssize_t len = readlink(system_dirs[i], target, sizeof target - 1);

		target[len > 0 ? len : 0] = '\0';
		if (len > 0 && self->walls->tier == 'N')
			add(self, "link", target, system_dirs[i]);
		else
			add(self, "opt", system_dirs[i], system_dirs[i]);
	}
	for (size_t i = 0; i < COUNT_OF(etc); i++) {
		snprintf(path, sizeof path, "/etc/%s", etc[i]);
		add(self, "opt", path, path);
	}
	for (size_t i = 0; i < COUNT_OF(elsewhere); i++)
		add(self, "opt", elsewhere[i], elsewhere[i]);
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "group" : "passwd";
		char shown[32];

		snprintf(path, sizeof path, "%s/%s", self->walls->identity, name);
		snprintf(shown, sizeof shown, "/etc/%s", name);
		add(self, "ro", self->walls->tier == 'N' ? path : shown, shown);
	}
}

static void add_own(struct plan_text *self, const struct walls_kernel *kernel,
		    const struct walls_view *view)
{
	static const char *const parts[] = {"chunks", "generations"};

	add(self, "rw", kernel->workdir, view->workdir);
	add(self, "rw", kernel->runtime_dir, view->runtime_dir);
	add(self, "rw", kernel->home, view->home);
	if (kernel->copy)
		add(self, "rw", kernel->copy, view->copy);
	if (!kernel->store)
		return;
	for (size_t i = 0; i < COUNT_OF(parts); i++) {
		char path[PATH_MAX + 16], shown[PATH_MAX + 16];

		snprintf(path, sizeof path, "%s/%s", kernel->store, parts[i]);
		snprintf(shown, sizeof shown, "%s/%s", view->store, parts[i]);
		add(self, "own", path, shown);
	}
	add(self, "rw", kernel->spool, view->spool);
}

static void add_network(const struct walls *self, struct buf *out)
{
	if (self->network == NETWORK_HOST)
		return;
	buf_text(out, self->tier == 'N' ? "net\town\n" : "net\tnone\n");
	if (self->network != NETWORK_PROXY)
		return;
	if (self->tier == 'N')
		buf_printf(out, "forwarder\t%s\nproxy\t%s\t%u\n", self->paths->forward,
			   self->proxy.host, self->proxy.port);
	else
		buf_printf(out, "port\t%u\n", self->proxy.port);
}

int walls_plan(const struct walls *self, const struct walls_kernel *kernel,
	       const struct walls_view *view, struct buf *out, struct err *err)
{
	struct plan_text text = {.walls = self, .out = out};
	unsigned id = kernel->owner  ? kernel->owner
		      : self->become ? WALLS_FIRST_ID + kernel->number % WALLS_IDS
				     : WALLS_APPEAR_ID;

	buf_printf(out, "tier\t%c\ncwd\t%s\n", self->tier, view->workdir);
	if (self->tier == '0')
		return 0;
	if (self->tier == 'U')
		buf_printf(out, "become\t%u\t%u\n", id, id);
	if (self->tier == 'N')
		buf_printf(out, "%s\t%u\t%u\n", self->become ? "become" : "appear", id,
			   id);
	if (kernel->copy)
		buf_text(out, "modes\tall\n");
	if (self->guard)
		buf_text(out, "guard\tconnect\n");
	add_network(self, out);
	add_system(&text);
	add_interpreter(&text);
	add_list(&text, self->config->read_dirs, ":");
	add_own(&text, kernel, view);
	if (text.bad[0])
		return err_set(err, ERR_CONFIG,
			       "the name of %.150s has a tab or a line end in it: "
			       "rename it",
			       text.bad);
	return 0;
}

/* ---- the environment ---- */

/* They are about the daemon's user, and lead to what the kernel does not see. */
static bool is_replaced(const char *variable)
{
	static const char *const names[] = {
	    "PATH=",   "HOME=",  "USER=",           "LOGNAME=",
	    "TMPDIR=", "SHELL=", "XDG_CACHE_HOME=", "MPLCONFIGDIR="};

	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* What its variables say of proxies holds for the machine's network, not for one of its
 * own: from there the proxy is reached through the forwarder. */
static size_t add_proxy(const struct walls *self, char **env)
{
	struct proxy seen = self->proxy;

	if (self->network != NETWORK_PROXY)
		return 0;
	if (self->tier == 'N') {
		snprintf(seen.host, sizeof seen.host, "127.0.0.1");
		seen.port = FORWARD_PORT;
	}
	return (size_t)proxy_env(&seen, env);
}

char **walls_env(const struct walls *self, const struct walls_view *view,
		 char *const base[])
{
	size_t count = 0, at = 0;
	const char *python = self->paths->python;
	bool off = self->tier == '0', host = self->network == NETWORK_HOST;

	while (base[count])
		count++;
	char **env = xcalloc(count + 8 + PROXY_VARIABLES, sizeof *env);
	for (size_t i = 0; i < count; i++)
		if (off ||
		    (!is_replaced(base[i]) && (host || !proxy_is_variable(base[i]))))
			env[at++] = xstrdup(base[i]);
	if (off)
		return env;
	env[at++] = xasprintf("PATH=%.*s:" SYSTEM_PATH,
			      (int)(strrchr(python, '/') - python), python);
	env[at++] = xasprintf("HOME=%s", view->home);
	/* The interpreter's own packages cannot be written; pyside knows this place. */
	env[at++] = xasprintf("PIP_TARGET=%s/packages", view->home);
	env[at++] = xasprintf("TMPDIR=%s", view->tmp);
	env[at++] = xstrdup("SHELL=/bin/sh");
	at += add_proxy(self, env + at);
	env[at++] = xstrdup("USER=kernel");
	env[at++] = xstrdup("LOGNAME=kernel");
	return env;
}
