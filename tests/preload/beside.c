/* For test_interpose.py: beside STORE. Reads a file into a region while the epoch with the region's former content is being stored. With
 * -DPLUGIN it is a library, which beside_main.c loads. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <varve/varve.h>

#ifdef PLUGIN
#define MAIN beside
#else
#define MAIN main
#endif

enum { LEN = 4 << 20 };

#define MUST(e) ((e) ? (void)0 : (fprintf(stderr, "line %d: %s: %s; %s\n", __LINE__, #e, strerror(errno), varve_last_error()), exit(1)))

static int open_file(const char *store)
{
	char path[4096], *bytes = malloc(LEN);
	int fd;

	snprintf(path, sizeof(path), "%s.input", store);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	MUST(bytes && fd >= 0);
	memset(bytes, 'b', LEN);
	MUST(write(fd, bytes, LEN) == LEN && lseek(fd, 0, SEEK_SET) == 0);
	free(bytes);
	return fd;
}

/* The kernel returns a short count at the first page that it may not write, and then an error. */
static void read_all(int fd, char *to)
{
	ssize_t n;

	for (size_t got = 0; got < LEN; got += (size_t)n) {
		n = read(fd, to + got, LEN - got);
		if (n <= 0) {
			fprintf(stderr, "read: %s\n", strerror(errno));
			_exit(2);
		}
	}
}

static void check_epoch(varve_session *v, uint64_t epoch, int wanted)
{
	char *bytes = malloc(LEN), *same = malloc(LEN);

	MUST(bytes && same);
	memset(same, wanted, LEN);
	MUST(varve_restart_region(v, epoch, "r", bytes, LEN) == 0);
	MUST(memcmp(bytes, same, LEN) == 0);
	free(bytes);
	free(same);
}

int MAIN(int argc, char **argv);
int MAIN(int argc, char **argv)
{
	struct sigaction none = { .sa_handler = SIG_DFL }, old;
	varve_session *v;
	char *r = malloc(LEN);
	int fd;

	MUST(argc == 2 && r);
	fd = open_file(argv[1]);
	memset(r, 'a', LEN);
	MUST(varve_open(argv[1], "lineage", getenv("VARVE_MODE") ? NULL : "buffer=64KiB bandwidth=20MiB codec=none tracker=mprotect", &v) == 0);
	MUST(varve_protect(v, "r", r, LEN) == 0);
	MUST(varve_checkpoint(v) == 0);
	MUST(sigaction(SIGSEGV, &none, &old) == 0);
	read_all(fd, r);
	MUST(varve_checkpoint(v) == 0);
	MUST(varve_wait(v, VARVE_LATEST) == 0);
	check_epoch(v, 1, 'a');
	check_epoch(v, 2, 'b');
	MUST(varve_unprotect(v, "r") == 0);
	free(r);
	MUST(varve_close(v) == 0);
	close(fd);
	puts("good");
	return 0;
}
