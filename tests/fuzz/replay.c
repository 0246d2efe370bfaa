// SPDX-License-Identifier: MIT
/*
 * replay DIRECTORY - runs a driver over every file of a corpus, where there is no
 * libFuzzer: the C tests do it under gcc's sanitizers.
 */
#include <dirent.h>

#include "fuzz.h"

enum { FILE_MAX = 1 << 20 };

static void replay(const char *directory, const char *name)
{
	static uint8_t data[FILE_MAX];
	owned(free_text) char *path = xasprintf("%s/%s", directory, name);
	FILE *file = fopen(path, "rb");

	MUST(file);
	struct input input = {data, fread(data, 1, sizeof data, file)};
	size_t size = input.left;
	MUST(!ferror(file) && size < sizeof data);
	fclose(file);
	owned(free_text) char *copy = input_copy(&input, size, false);
	LLVMFuzzerTestOneInput((const uint8_t *)copy, size);
}

int main(int argc, char **argv)
{
	struct dirent **files;
	int count = argc == 2 ? scandir(argv[1], &files, NULL, alphasort) : -1;
	int done = 0;

	if (count < 0) {
		fprintf(stderr, "usage: replay DIRECTORY\n");
		return 2;
	}
	for (int i = 0; i < count; i++) {
		if (files[i]->d_name[0] != '.') {
			replay(argv[1], files[i]->d_name);
			done++;
		}
		free(files[i]);
	}
	free(files);
	printf("%d inputs\n", done);
	return done ? 0 : 1; /* an empty corpus tests nothing */
}
