// Runs a fuzz target on every file of the given folders: the corpus as an ordinary test, with any compiler.
// The name of an input is printed before it is run, so that a crash names its cause.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// The buffer has exactly the input's size: a sanitizer sees the first byte read beyond it.
static int replay_file(const char *path, size_t size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc(size ? size : 1);
	int rc = -1;

	if (!f || !data || fread(data, 1, size, f) != size) {
		perror(path);
		goto out;
	}
	printf("%s\n", path);
	fflush(stdout);
	LLVMFuzzerTestOneInput(data, size);
	rc = 0;
out:
	free(data);
	if (f)
		fclose(f);
	return rc;
}

// The number of inputs run, or -1.
static long replay_entry(const char *dir, const char *name)
{
	char path[4096];
	struct stat st;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path) || stat(path, &st) != 0) {
		perror(name);
		return -1;
	}
	if (!S_ISREG(st.st_mode))
		return 0;
	return replay_file(path, (size_t)st.st_size) < 0 ? -1 : 1;
}

static long replay_dir(const char *dir)
{
	struct dirent **entries = NULL;
	int n = scandir(dir, &entries, NULL, alphasort);
	long count = 0;

	if (n < 0)
		perror(dir);
	for (int i = 0; i < n; i++) {
		long one = count < 0 ? 0 : replay_entry(dir, entries[i]->d_name);

		count = one < 0 ? -1 : count + one;
		free(entries[i]);
	}
	free(entries);
	return n < 0 ? -1 : count;
}

int main(int argc, char **argv)
{
	long total = 0;

	for (int i = 1; i < argc; i++) {
		long count = replay_dir(argv[i]);

		if (count < 0)
			return 1;
		total += count;
	}
	printf("%ld inputs\n", total);
	return total > 0 ? 0 : 1;
}
