#!/usr/bin/env bash
# Sets up what `make run` (argument: run), `make test` (test) or `make bench` (bench)
# needs and does not find: Debian packages, then Python environments and npm packages.  Safe to repeat; does
# nothing, quickly, when all is there.  Needs root or sudo only if a package is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:?usage: deploy/setup.sh run|demo|test|bench|uml}
python=${VIVARIUM_SETUP_PYTHON:-/usr/bin/python3} # Debian's own

say() { printf 'set-up: %s\n' "$*" >&2; }

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		say "needs root to run: $*"
		say "run it as root, or install sudo, then try again"
		exit 1
	fi
}

packages() { # of these purposes
	awk -v want=" $* " '!/^#/ && NF == 2 && index(want, " " $1 " ") { print $2 }' \
		deploy/packages.txt
}

ensure_packages() {
	local missing
	if ! command -v dpkg-query >/dev/null; then
		say "this is no Debian: what deploy/packages.txt lists for $* has to be there already"
		return 0
	fi
	# A package counts as there only when it is fully installed.
	missing=$(comm -23 <(packages "$@" | sort -u) \
		<(dpkg-query -W -f '${Package} ${Status}\n' 2>/dev/null |
			awk '$4 == "installed" { print $1 }' | sort -u))
	[ -n "$missing" ] || return 0
	say "installing Debian packages:" $missing
	as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q >&2
	# shellcheck disable=SC2086
	without_services as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -q -y --no-install-recommends $missing >&2
}

# Packages with a service (squid) are wanted for their programs, which tests start by
# themselves: Debian's way to forbid the start, now and at the next boot.
without_services() { # COMMAND...
	local policy=/usr/sbin/policy-rc.d made='' status=0
	if [ ! -e $policy ]; then
		printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
		as_root chmod 755 $policy
		made=1
	fi
	"$@" || status=$?
	[ -z "$made" ] || as_root rm -f $policy
	case " $* " in
	*" squid "*) [ ! -d /run/systemd/system ] || as_root systemctl disable -q squid ;;
	esac
	return $status
}

pip_environment() { # DIRECTORY LOCK-FILE
	rm -rf "$1"
	"$python" -m venv "$1"
	"$1/bin/python" -m pip install -q --disable-pip-version-check --retries 2 \
		--timeout 20 --require-hashes --only-binary :all: -r "$2" >&2
}

uv_environment() { # the same, faster, where .venv-dev is there
	rm -rf "$1"
	"$python" -m venv "$1"
	.venv-dev/bin/uv pip sync -q --python "$1/bin/python" --require-hashes "$2" >&2
}

# ensure_environment DIRECTORY LOCK-FILE PURPOSE-OF-DEBIAN-FALLBACK
# The stamp holds the lock's hash and where the packages came from; an environment
# built from Debian's packages is tried again from PyPI when the lock changes.
ensure_environment() {
	local dir=$1 lock=$2 fallback=$3 want
	want=$(sha256sum <"$lock" | cut -d' ' -f1)
	[ "$(cut -d' ' -f1 "$dir/.stamp" 2>/dev/null)" = "$want" ] && return 0
	say "making $dir from $lock (about a minute)"
	if pip_environment "$dir" "$lock"; then
		echo "$want pypi" >"$dir/.stamp"
		return 0
	fi
	say "PyPI cannot be reached (or refused $lock): using Debian's Python packages."
	say "To try PyPI again later: rm -r $dir"
	ensure_packages "$fallback"
	rm -rf "$dir"
	"$python" -m venv --system-site-packages "$dir"
	echo "$want debian" >"$dir/.stamp"
}

# Matplotlib's list of fonts for both interpreters that kernels are run with here, made anew
# when fonts or packages change, so that no workspace's first chart has to wait for it.
ensure_fontlists() {
	local room=pyside/vivarium_charts/fontlists want interpreter
	want=$({ fc-list : file && dpkg-query -W python3-matplotlib; cat .venv/.stamp; } 2>/dev/null |
		sort | sha256sum)
	[ "$(cat $room/.stamp 2>/dev/null)" != "$want" ] || return 0
	say "making matplotlib's list of fonts"
	rm -rf $room
	mkdir $room
	for interpreter in "$PWD/.venv/bin/python" "$python"; do
		"$interpreter" -c 'import matplotlib' 2>/dev/null || continue
		(cd pyside && "$interpreter" -m vivarium_charts.fontlist)
	done
	echo "$want" >$room/.stamp
}

# optional_environment MAKER DIRECTORY LOCK-FILE WORDS: one that only tests or the bench
# need.  False: out of reach, which WORDS tell; the next set-up tries again.
optional_environment() {
	local dir=$2 lock=$3 want
	want=$(sha256sum <"$lock" | cut -d' ' -f1)
	[ "$(cut -d' ' -f1 "$dir/.stamp" 2>/dev/null)" != "$want" ] || return 0
	say "making $dir from $lock (about a minute)"
	if "$1" "$dir" "$lock"; then
		echo "$want pypi" >"$dir/.stamp"
		return 0
	fi
	say "PyPI cannot be reached: $4"
	rm -rf "$dir"
	return 1
}

# npm_packages DIRECTORY WORDS: the same for what its package-lock.json names.
npm_packages() {
	local room=$1 want
	want=$(sha256sum <"$room/package-lock.json" | cut -d' ' -f1)
	[ "$(cat "$room/node_modules/.stamp" 2>/dev/null)" != "$want" ] || return 0
	say "installing npm packages in $room (about a minute)"
	# The machine's own certificates count, as for pip.  npm's own retries take minutes.
	if NODE_EXTRA_CA_CERTS=${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt} \
		.venv-clients/bin/npm ci --prefix "$room" --ignore-scripts --no-fund --no-audit \
		--loglevel error --fetch-retries 1 --fetch-timeout 20000 >&2; then
		echo "$want" >"$room/node_modules/.stamp"
		return 0
	fi
	say "npm's registry cannot be reached: $2"
	rm -rf "$room/node_modules"
	return 1
}

# The MCP clients and peers of tests/clients, the suite of tests/conformance, and programs
# that people use (tests/agents; of 210 MB, Claude Code is 180).  Node.js comes with npm from
# PyPI: Debian's npm would bring 350 packages, and its Node.js is too old for the Inspector.
ensure_clients() {
	optional_environment pip_environment .venv-clients tests/clients/requirements.txt \
		"tests with other MCP clients will skip" || return 0
	npm_packages tests/clients "tests with clients for Node.js will skip" || true
	npm_packages tests/conformance "the conformance suite will skip" || true
	npm_packages tests/agents "tests with Claude Code and others will skip" || true
}

# Servers that make bench measures against.
ensure_peers() {
	optional_environment pip_environment .venv-bench bench/requirements.txt \
		"there is nothing to measure against" || return 0
	npm_packages bench "there is nothing to measure against" || true
}

# What the results of charts that draw in a browser are tested with.
ensure_plots() {
	optional_environment uv_environment .venv-plots requirements-plots.txt \
		"tests of plotly, altair, bokeh and polars will skip" || true
}

case $purpose in
run)
	ensure_packages build run
	ensure_environment .venv requirements.txt python
	ensure_fontlists
	;;
demo)
	ensure_packages build run
	ensure_environment .venv requirements.txt python
	ensure_environment .venv-dev requirements-dev.txt dev
	ensure_fontlists
	;;
test)
	ensure_packages build run python test
	ensure_environment .venv requirements.txt python
	ensure_environment .venv-dev requirements-dev.txt dev
	ensure_fontlists
	ensure_clients
	ensure_plots
	;;
bench)
	ensure_packages build run python bench
	ensure_environment .venv requirements.txt python
	ensure_environment .venv-dev requirements-dev.txt dev
	ensure_fontlists
	ensure_clients
	ensure_peers
	command -v node >/dev/null || ensure_packages node
	;;
uml) ensure_packages uml ;;
*)
	say "unknown purpose '$purpose': use run, test or bench"
	exit 2
	;;
esac
