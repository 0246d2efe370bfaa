// SPDX-License-Identifier: MIT
/*
 * Counts what a program built with AddressSanitizer has allocated and not freed, to the
 * byte, for the soak: resident memory moves by megabytes for other reasons.  A library
 * to preload; the count is kept in the file that SOAK_HEAP names, 8 bytes of this
 * machine.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Weak: not there in another program, nor in a build without the sanitizer. */
size_t __sanitizer_get_allocated_size(const volatile void *p) __attribute__((weak));
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *,
								size_t),
					      void (*on_free)(const volatile void *))
    __attribute__((weak));

static _Atomic int64_t *live; /* shared with who reads the file */

static void on_malloc(const volatile void *p, size_t size)
{
	(void)p;
	atomic_fetch_add(live, (int64_t)size);
}

static void on_free(const volatile void *p)
{
	if (p)
		atomic_fetch_sub(live, (int64_t)__sanitizer_get_allocated_size(p));
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("SOAK_HEAP");
	int fd = path && __sanitizer_install_malloc_and_free_hooks
		     ? open(path, O_RDWR | O_CLOEXEC)
		     : -1;

	if (fd < 0)
		return;
	live = mmap(NULL, sizeof *live, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (live == MAP_FAILED)
		abort();
	/* For this program only, not for those that it starts. */
	unsetenv("SOAK_HEAP");
	unsetenv("LD_PRELOAD");
	if (!__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free))
		abort();
}
