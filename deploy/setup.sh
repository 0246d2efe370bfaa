#!/usr/bin/env bash
# Sets up what `make run` (argument: run), `make test` (test) or `make bench` (bench)
# needs and does not find: Debian packages, then Python environments and npm packages.  Safe to repeat; does
# nothing, quickly, when all is there.  Needs root or sudo only if a package is missing.
# VIVARIUM_SETUP_PYTHON: the interpreter that environments are made with.
# VIVARIUM_SETUP_PYPI=0: Debian's Python packages, without asking PyPI.
set -euo pipefail
cd "$(dirname "$0")/.."

purpose=${1:?usage: deploy/setup.sh run|demo|test|bench|uml}
python=${VIVARIUM_SETUP_PYTHON:-/usr/bin/python3} # Debian's own

making='' # the directory that is half made
policy='' # Debian's file against starting services, if made here

say() { printf 'set-up: %s\n' "$*" >&2; }

# A trap, as pip and apt catch an interrupt and end with 1, like after any other failure.
interrupted() { # STATUS
	trap '' INT TERM HUP
	say "interrupted"
	exit "$1"
}

clean_up() {
	[ -z "$making" ] || rm -rf "$making"
	[ -z "$policy" ] || as_root rm -f "$policy"
}

# The lock is on the directory itself: whoever may only read it needs no set-up either.
alone_in_clone() {
	exec 9<.
	flock -n 9 && return 0
	say "another set-up is at work in this clone: waiting for it"
	flock 9 || say "no lock can be had here: going on without"
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@" 9>&-
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
	local status=0
	if [ ! -e /usr/sbin/policy-rc.d ]; then
		policy=/usr/sbin/policy-rc.d
		printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
		as_root chmod 755 $policy
	fi
	"$@" || status=$?
	[ -z "$policy" ] || as_root rm -f "$policy"
	policy=''
	case " $* " in
	*" squid "*) [ ! -d /run/systemd/system ] || as_root systemctl disable -q squid ;;
	esac
	return $status
}

pip_environment() { # DIRECTORY LOCK-FILE
	rm -rf "$1" && "$python" -m venv "$1" &&
		"$1/bin/python" -m pip install -q --disable-pip-version-check --retries 2 \
			--timeout 20 --require-hashes --only-binary :all: -r "$2" >&2
}

uv_environment() { # the same, faster, where .venv-dev is there
	rm -rf "$1" && "$python" -m venv "$1" &&
		.venv-dev/bin/uv pip sync -q --python "$1/bin/python" --require-hashes "$2" >&2
}

# Whether the index answers that pip is set to, asked as pip asks: through the user's proxy,
# with his settings, for the first package of the lock that every machine needs.
index_is_silent() { # DIRECTORY LOCK-FILE
	"$1/bin/python" -m pip --version >/dev/null 2>&1 || return 1 # not even pip is there
	! "$1/bin/python" -m pip index versions --disable-pip-version-check --no-cache-dir \
		--retries 1 --timeout 20 "$(sed -n '/;/d; s/==.*//p' "$2" | head -n 1)" >/dev/null 2>&1
}

was_made() { # DIRECTORY HASH SOURCE
	echo "$2 $3" >"$1/.stamp"
	making=''
}

# from_pypi DIRECTORY LOCK-FILE HASH.  False: PyPI does not answer.  Ends set-up if that is
# not what failed, as another source of packages would hide it.
from_pypi() {
	[ "${VIVARIUM_SETUP_PYPI:-1}" != 0 ] || return 1
	say "making $1 from $2 (about a minute)"
	making=$1
	if pip_environment "$1" "$2"; then
		was_made "$1" "$3" pypi
		return 0
	fi
	if ! index_is_silent "$1" "$2"; then
		say "$1 could not be made; the lines above say why.  Mend that (a full disk? an index"
		say "without these versions?) and try again, or take Debian's Python packages:"
		say "VIVARIUM_SETUP_PYPI=0 make $purpose"
		exit 1
	fi
	say "PyPI cannot be reached."
	return 1
}

from_debian() { # DIRECTORY HASH PURPOSE
	say "making $1 with Debian's Python packages"
	ensure_packages "$3"
	making=$1
	rm -rf "$1"
	"$python" -m venv --system-site-packages "$1"
	was_made "$1" "$2" debian
}

# ensure_environment DIRECTORY LOCK-FILE [PURPOSE-OF-DEBIAN-FALLBACK]
# The stamp holds the lock's hash and where the packages came from; an environment
# built from Debian's packages is tried again from PyPI when the lock changes.
# False: it has to be from PyPI, and cannot.
ensure_environment() {
	local dir=$1 lock=$2 fallback=${3-} want had source
	want=$(sha256sum <"$lock" | cut -d' ' -f1)
	read -r had source 2>/dev/null <"$dir/.stamp" || had=''
	if [ "$had" != "$want" ]; then
		from_pypi "$dir" "$lock" "$want" && return 0
		[ -n "$fallback" ] || return 1
		from_debian "$dir" "$want" "$fallback"
	elif [ "$source" = pypi ]; then
		return 0
	fi
	say "$dir has Debian's Python packages; to try PyPI again: rm -r $dir"
	[ -n "$fallback" ]
}

# Matplotlib's list of fonts for both interpreters that kernels are run with here, made anew
# when fonts or packages change, so that no workspace's first chart has to wait for it.
ensure_fontlists() {
	local room=pyside/vivarium_charts/fontlists want interpreter
	want=$({ fc-list : file && dpkg-query -W python3-matplotlib; cat .venv/.stamp; } 2>/dev/null |
		sort | sha256sum)
	[ "$(cat $room/.stamp 2>/dev/null)" != "$want" ] || return 0
	say "making matplotlib's list of fonts"
	making=$room
	rm -rf $room
	mkdir $room
	for interpreter in "$PWD/.venv/bin/python" "$python"; do
		"$interpreter" -c 'import matplotlib' 2>/dev/null || continue
		(cd pyside && "$interpreter" -m vivarium_charts.fontlist)
	done
	echo "$want" >$room/.stamp
	making=''
}

# optional_environment MAKER DIRECTORY LOCK-FILE WORDS: one that only tests or the bench
# need.  False: out of reach, which WORDS tell; the next set-up tries again.
optional_environment() {
	local dir=$2 lock=$3 want
	want=$(sha256sum <"$lock" | cut -d' ' -f1)
	[ "$(cut -d' ' -f1 "$dir/.stamp" 2>/dev/null)" != "$want" ] || return 0
	say "making $dir from $lock (about a minute)"
	making=$dir
	if "$1" "$dir" "$lock"; then
		was_made "$dir" "$want" pypi
		return 0
	fi
	say "$dir could not be made: $4"
	rm -rf "$dir"
	return 1
}

# npm_packages DIRECTORY WORDS: the same for what its package-lock.json names.
npm_packages() {
	local room=$1 want
	want=$(sha256sum <"$room/package-lock.json" | cut -d' ' -f1)
	[ "$(cat "$room/node_modules/.stamp" 2>/dev/null)" != "$want" ] || return 0
	say "installing npm packages in $room (about a minute)"
	making=$room/node_modules
	# The machine's own certificates count, as for pip.  npm's own retries take minutes.
	if NODE_EXTRA_CA_CERTS=${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt} \
		.venv-clients/bin/npm ci --prefix "$room" --ignore-scripts --no-fund --no-audit \
		--loglevel error --fetch-retries 1 --fetch-timeout 20000 >&2; then
		echo "$want" >"$room/node_modules/.stamp"
		making=''
		return 0
	fi
	say "npm could not install them: $2"
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

trap clean_up EXIT
trap 'interrupted 130' INT
trap 'interrupted 143' TERM
trap 'interrupted 129' HUP
alone_in_clone

case $purpose in
run)
	ensure_packages build run
	ensure_environment .venv requirements.txt python
	ensure_fontlists
	;;
demo)
	ensure_packages build run
	ensure_environment .venv-dev requirements-dev.txt || {
		say "the demo needs the official MCP client for Python, which only PyPI has"
		exit 1
	}
	ensure_environment .venv requirements.txt python
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
	say "unknown purpose '$purpose': use run, demo, test, bench or uml"
	exit 2
	;;
esac
