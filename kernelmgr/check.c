// SPDX-License-Identifier: MIT
#include "kernelmgr/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernelmgr/files.h"
#include "kernelmgr/launch.h"
#include "kernelmgr/limits.h"
#include "kernelmgr/state.h"
#include "kernelmgr/tokens.h"
#include "kernelmgr/walls.h"
#include "wire/address.h"
#include "wire/loop.h"
#include "wire/mem.h"
#include "wire/tls.h"
#include "wire/utf8.h"

/* What it prints begins with "Python "; with an argument it imports what it finds, else
 * a second line has the directories that it needs, separated by tabs. */
static const char probe[] =
    "import sys\n"
    "def no(*words): print(*words); sys.exit(1)\n"
    "print('Python', sys.version.split()[0], end=' ')\n"
    "if sys.version_info < (3, 11): no('is too old: 3.11 or newer is needed')\n"
    "from importlib.util import find_spec\n"
    "if not find_spec('ipykernel'): no('has no ipykernel: install it there')\n"
    "if len(sys.argv) < 2:\n"
    "    from os.path import dirname, exists, realpath\n"
    "    program = sys.executable\n"
    "    need = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix,\n"
    "            dirname(program), dirname(realpath(program)), *sys.path]\n"
    "    need = sorted({p for p in need if p and exists(p)} - {'/'})\n"
    "    print()\n"
    "    for p in need:\n"
    "        if not any(p.startswith(q + '/') for q in ['/usr', *need]) and p != "
    "'/usr':\n"
    "            print(p, end='\\t')\n"
    "    sys.exit()\n"
    "try: import ipykernel, IPython, zmq\n"
    "except Exception as error: no('cannot import ipykernel:', error)\n"
    "print('with ipykernel', ipykernel.__version__, 'IPython', IPython.__version__,"
    " 'pyzmq', zmq.__version__)\n"
    "missing = []\n"
    "for name in ('numpy', 'pandas', 'matplotlib'):\n"
    "    try: __import__(name)\n"
    "    except ImportError: missing.append(name)\n"
    "if missing: print('but without', ', '.join(missing))\n";

enum {
	ANSWER_MAX = 4096, /* bytes; a program that writes more gets an error */
	ANSWER_SHOWN = 300,
	ANSWER_US = 20 * 1000 * 1000,
};

struct run {
	struct loop *loop;
	struct child *child;
	struct loop_timer deadline;
	int status;
};

static void on_ended(int status, void *arg)
{
	struct run *run = arg;

	run->status = status;
	loop_stop(run->loop);
}

static void on_deadline(void *arg)
{
	child_kill(((struct run *)arg)->child);
}

static int report(bool ok, const char *what, const char *text)
{
	printf("%-3s %s: %s\n", ok ? "ok" : "no", what, text);
	return ok ? 0 : -1;
}

/* Runs the probe in a program that may be no Python; out gets what it says. */
static int run_probe(const char *python, char *const env[], bool imports, char *out,
		     struct err *err)
{
	owned(loop_destroy) struct loop *loop = NULL;
	owned(launch_env_destroy) char **kernel_env = launch_env(python, env);
	owned(close_fd) int output =
	    memfd_create("check", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	owned(close_fd) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (output < 0 || null < 0 || ftruncate(output, ANSWER_MAX) < 0 ||
	    fcntl(output, F_ADD_SEALS, F_SEAL_GROW) < 0)
		return err_set(err, ERR_SYSTEM, "make a memory file");
	if (loop_create(&loop, 4096, err) < 0)
		return -1;
	struct run run = {.loop = loop};
	const struct launch what = {
	    .argv = (const char *const[]){python, "-c", probe, imports ? "all" : NULL,
					  NULL},
	    .env = (const char *const *)(uintptr_t)kernel_env,
	    .cwd = "/", /* Python imports from there: not from where code writes */
	    .fds = (const int[]){null, output, output},
	    .fd_count = 3,
	};
	if (launch_child(&run.child, loop, &what, on_ended, &run, err) < 0)
		return -1;
	loop_timer_start(loop, &run.deadline, ANSWER_US, on_deadline, &run);
	loop_run(loop);
	loop_timer_stop(&run.deadline);
	ssize_t len = pread(output, out, ANSWER_MAX, 0); /* zeros after the text */
	out[len > 0 ? len : 0] = '\0';
	return run.status;
}

/* Asks the program; out gets its answer in one line, and err why it will not do.
 * paths gets the directories that it needs; NULL: it imports all instead. */
static int ask_python(const char *python, char *const env[], struct launch_paths *paths,
		      struct buf *out, struct err *err)
{
	char answer[ANSWER_MAX + 1];
	int status = run_probe(python, env, !paths, answer, err);

	if (status < 0)
		return -1;
	if (strncmp(answer, "Python ", 7) != 0)
		return err_set(err, ERR_CONFIG, "'%.120s' is not a Python interpreter",
			       python);
	char *second = strchr(answer, '\n');
	if (paths && second) {
		*second++ = '\0';
		second[strcspn(second, "\n")] = '\0';
		snprintf(paths->python_dirs, sizeof paths->python_dirs, "%s", second);
	}
	for (char *end; (end = strchr(answer, '\n'));)
		*end = end[1] ? ' ' : '\0';
	utf8_show_cut(out, answer, strlen(answer), ANSWER_SHOWN);
	if (status == 0)
		return 0;
	return err_set(err, ERR_CONFIG, "%.120s cannot run kernels: %.100s", python,
		       buf_str(out));
}

int check_python(struct launch_paths *paths, const struct config *config,
		 char *const env[], struct err *err)
{
	owned(buf_finish) struct buf answer = {0};

	if (launch_find_python(paths, config->python, err) < 0 ||
	    ask_python(paths->python, env, paths, &answer, err) < 0)
		return config_blame(config, "python", err);
	return 0;
}

static int report_python(const struct config *config, char *const env[])
{
	owned(buf_finish) struct buf answer = {0};
	char line[PATH_MAX + 600];
	struct launch_paths paths;
	struct err err;

	if (launch_find(&paths, &err) < 0)
		return report(false, "parts", err.msg);
	report(true, "parts", paths.supervisor);
	if (launch_find_python(&paths, config->python, &err) < 0 ||
	    ask_python(paths.python, env, NULL, &answer, &err) < 0) {
		config_blame(config, "python", &err);
		return report(false, "python", err.msg);
	}
	snprintf(line, sizeof line, "%s: %.500s", paths.python, buf_str(&answer));
	return report(true, "python", line);
}

static int report_address(const struct config *config)
{
	char line[96];
	struct err err;

	if (config_check_exposure(config, &err) < 0 ||
	    config_check_hosts(config, &err) < 0 ||
	    address_try(config->host, (int)config->port, &err) < 0)
		return report(false, "address", err.msg);
	snprintf(line, sizeof line, "%s port %d", config->host, (int)config->port);
	return report(true, "address", line);
}

static int report_directories(const struct config *config, char state[PATH_MAX])
{
	owned(files_close) struct files *files = NULL;
	char workdir[PATH_MAX];
	struct err err;

	if (files_open(&files, config->workdir, &err) < 0) {
		config_blame(config, "workdir", &err);
		return report(false, "work directory", err.msg);
	}
	if (faccessat(files_fd(files), ".", W_OK, AT_EACCESS) < 0)
		return report(false, "work directory", "not writable");
	config_real_path(workdir, config->workdir);
	report(true, "work directory", workdir);
	if (state_open(state, config->state_dir, config->workdir, &err) < 0) {
		config_blame(config, "state-dir", &err);
		return report(false, "state directory", err.msg);
	}
	return report(true, "state directory", state);
}

/* One daemon to a work directory. */
static int report_use(const char *state_dir)
{
	char owner[STATE_OWNER_SIZE], line[STATE_OWNER_SIZE + 48];

	if (!state_is_locked(state_dir, owner))
		return 0;
	snprintf(line, sizeof line, "the work directory, by pid %s, a Vivarium", owner);
	return report(false, "in use", line);
}

/* Limits that are not kept are no reason not to start. */
static void report_limits(const struct config *config, const struct walls *walls)
{
	owned(buf_finish) struct buf kept = {0}, missing = {0};
	struct limits limits;

	limits_open(&limits, NULL, config, walls);
	limits_describe(&limits, &kept, &missing);
	limits_close(&limits);
	if (kept.size)
		report(true, "limits", buf_str(&kept));
	if (missing.size)
		report(false, "limits", buf_str(&missing));
}

/* Tries them, in directories of its own. */
static int report_walls(const struct config *config, char *const env[], bool *apart)
{
	owned(launch_env_destroy) char **kernel_env = NULL;
	char runtime_dir[PATH_MAX] = "", state_dir[PATH_MAX], text[600];
	owned(close_fd) int lock = -1;
	struct launch_paths paths;
	struct walls walls;
	struct err err;

	if (launch_find(&paths, &err) < 0 ||
	    check_python(&paths, config, env, &err) < 0 ||
	    state_open(state_dir, config->state_dir, config->workdir, &err) < 0 ||
	    state_runtime_open(runtime_dir, &lock, &err) < 0)
		return report(false, "walls", err.msg);
	kernel_env = launch_env(paths.python, env);
	int rc = walls_decide(&walls, config, &paths, kernel_env, runtime_dir,
			      state_dir, &err);
	if (rc == 0)
		walls_describe(&walls, text, sizeof text);
	if (rc == 0)
		report_limits(config, &walls);
	*apart = rc == 0 && walls_apart(&walls);
	walls_finish(&walls);
	state_runtime_close(runtime_dir, &lock);
	return report(rc == 0, "walls", rc == 0 ? text : err.msg);
}

static const char *who_may(const struct config *config)
{
	if (tokens_wanted(config))
		return "by token";
	return config->user_header[0] && config->proxy_secret[0]
		   ? "whoever has the proxy secret"
		   : "anybody who can connect";
}

/* What every client has to show, and whether they can read along. */
static int report_access(const struct config *config, bool apart)
{
	const struct tls_files tls = {config->tls_cert, config->tls_key};
	owned(tls_close) struct tls *opened = NULL;
	struct tokens tokens;
	char line[64];
	struct err err;

	if (config_check_users(config, apart, &err) < 0 ||
	    config_check_tls(config, &err) < 0 ||
	    config_check_outside(config, &err) < 0 ||
	    (tls.cert[0] && tls_open(&opened, &tls, &err) < 0) ||
	    tokens_open(&tokens, config, &err) < 0)
		return report(false, "access", err.msg);
	tokens_close(&tokens);
	snprintf(line, sizeof line, "%s%s", who_may(config),
		 tls.cert[0] ? ", over HTTPS" : "");
	return report(true, "access", line);
}

int check_machine(const struct config *config, char *const env[])
{
	char state_dir[PATH_MAX];
	int python = report_python(config, env);
	int directories = report_directories(config, state_dir);
	int use = directories < 0 ? 0 : report_use(state_dir);
	bool apart = false;
	int walls = directories < 0 ? -1 : report_walls(config, env, &apart);
	int address = report_address(config);
	int access = report_access(config, apart);

	return python < 0 || directories < 0 || use < 0 || walls < 0 || address < 0 ||
	       access < 0;
}
