#include "support/place.h"
#include "vv_test.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[PLACE_MAX - 128];
static pid_t owner;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st;
	(void)type;
	(void)f;
	return remove(path);
}

void place_remove(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void clean_up(void)
{
	if (getpid() == owner)
		place_remove(root);
}

static void make_root(void)
{
	/* suite.end removes the folder of the suite, and so the files of tests that were killed. */
	const char *base = getenv("TMPDIR"), *suite = getenv("VARVE_SUITE_PLACE");

	if (!base && suite && access(suite, W_OK) == 0)
		base = suite;
	if (!base)
		base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("VARVE_BUILD");
	snprintf(root, sizeof(root), "%s/varve-test-XXXXXX", base ? base : ".");
	CHECK(mkdtemp(root));
	owner = getpid();
	atexit(clean_up);
}

/* Ranks that are threads may all be the first to ask. */
const char *place_root(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_root);
	return root;
}

const char *place_path(char out[PLACE_MAX], const char *name)
{
	snprintf(out, PLACE_MAX, "%s/%s", place_root(), name);
	return out;
}

void place_make_dir(const char *path)
{
	CHECK(mkdir(path, 0777) == 0 || errno == EEXIST);
}

uint8_t *place_read(const char *path, size_t *n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint8_t *p;

	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	*n = (size_t)st.st_size;
	p = malloc(*n + 1);
	CHECK(p && read(fd, p, *n) == (ssize_t)*n);
	close(fd);
	return p;
}

void place_write(const char *path, const void *p, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	CHECK(fd >= 0 && write(fd, p, n) == (ssize_t)n);
	close(fd);
}
