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
#include "kernelmgr/state.h"
#include "wire/loop.h"
#include "wire/mem.h"

static const char probe[] =
    "import sys, ipykernel, IPython, zmq\n"
    "print('Python', sys.version.split()[0], 'with ipykernel', ipykernel.__version__,"
    " 'IPython', IPython.__version__, 'pyzmq', zmq.__version__)\n"
    "missing = []\n"
    "for name in ('numpy', 'pandas', 'matplotlib'):\n"
    "    try: __import__(name)\n"
    "    except ImportError: missing.append(name)\n"
    "if missing: print('but without', ', '.join(missing))\n";

struct run {
	struct loop *loop;
	int status;
};

static void on_ended(int status, void *arg)
{
	struct run *run = arg;

	run->status = status;
	loop_stop(run->loop);
}

static int report(bool ok, const char *what, const char *text)
{
	printf("%-3s %s: %s\n", ok ? "ok" : "no", what, text);
	return ok ? 0 : -1;
}

/* Runs the probe in the kernels' interpreter; out gets what it says. */
static int ask_python(const char *python, char *const env[], char *out, size_t size,
		      struct err *err)
{
	owned(loop_destroy) struct loop *loop = NULL;
	owned(launch_env_destroy) char **kernel_env = launch_env(python, env);
	owned(close_fd) int output = memfd_create("check", MFD_CLOEXEC);
	owned(close_fd) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct child *child;

	if (output < 0 || null < 0)
		return err_set(err, ERR_SYSTEM, "make a memory file");
	if (loop_create(&loop, 4096, err) < 0)
		return -1;
	struct run run = {.loop = loop};
	const struct launch what = {
	    .argv = (const char *const[]){python, "-c", probe, NULL},
	    .env = (const char *const *)(uintptr_t)kernel_env,
	    .fds = (const int[]){null, output, output},
	    .fd_count = 3,
	};
	if (launch_child(&child, loop, &what, on_ended, &run, err) < 0)
		return -1;
	loop_run(loop);
	ssize_t len = pread(output, out, size - 1, 0);
	out[len > 0 ? len : 0] = '\0';
	while (len > 0 && out[len - 1] == '\n')
		out[--len] = '\0';
	if (run.status == 0)
		return 0;
	const char *last = strrchr(out, '\n'); /* the line of a traceback that tells */
	return err_set(err, ERR_CONFIG, "%.150s", last ? last + 1 : out);
}

static int check_python(const struct config *config, char *const env[])
{
	struct launch_paths paths;
	char words[512], line[PATH_MAX + 600];
	struct err err;

	if (launch_find(&paths, config->python, &err) < 0)
		return report(false, "parts", err.msg);
	report(true, "parts", paths.supervisor);
	if (ask_python(paths.python, env, words, sizeof words, &err) < 0) {
		snprintf(line, sizeof line,
			 "%s cannot run kernels: %s; install ipykernel there or set "
			 "VIVARIUM_PYTHON",
			 paths.python, err.msg);
		return report(false, "python", line);
	}
	for (char *end; (end = strchr(words, '\n'));)
		*end = ' ';
	snprintf(line, sizeof line, "%s: %s", paths.python, words);
	return report(true, "python", line);
}

static int check_directories(const struct config *config)
{
	owned(files_close) struct files *files = NULL;
	char state[PATH_MAX];
	struct err err;

	if (files_open(&files, config->workdir, &err) < 0)
		return report(false, "work directory", err.msg);
	if (faccessat(files_fd(files), ".", W_OK, AT_EACCESS) < 0)
		return report(false, "work directory", "not writable");
	report(true, "work directory", config->workdir);
	if (state_open(state, config->state_dir, config->workdir, &err) < 0)
		return report(false, "state directory", err.msg);
	return report(true, "state directory", state);
}

int check_machine(const struct config *config, char *const env[])
{
	int python = check_python(config, env);
	int directories = check_directories(config);

	return python < 0 || directories < 0;
}
