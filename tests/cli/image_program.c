/* Programs that are frozen and brought back. Each checks itself at every step and writes "STEP ok" or "STEP broken" into a file.
 *   threads FILE         four threads move money between accounts: there is never more or less of it
 *   family FILE          a parent and two children pass numbers round through pipes, each adding one
 *   grow FILE MIB        its heap grows by a block at every step, behind MIB of noise; no block ever changes
 *   twins FILE MIB       two arrays of so much, of numbers that cannot be foreseen, of which few differ
 *   churn FILE MIB       four threads write their pages in turn, over and over: each page is one step behind until its turn comes, so pages of two
 *                        moments do not go together
 *   map FILE FOLDER      memory of every segment, of known sizes, below names as odd as can be
 *   breed FILE           children come and go all the time
 *   count LIMIT          prints 1, 2, 3, ... up to the limit; exit 3 behind it */
#include "image_state.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ACCOUNTS = 64, EACH = 1000, BLOCK = 1 << 16, BLOCKS = 1 << 12 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long account[ACCOUNTS];
static unsigned long moved[4];

static void *move(void *arg)
{
	unsigned long *n = arg;

	for (uint64_t x = (uint64_t)(n - moved);; x++) {
		uint64_t r = mix(x);

		pthread_mutex_lock(&lock);
		account[r % ACCOUNTS] -= (long)(r >> 60);
		account[(r >> 8) % ACCOUNTS] += (long)(r >> 60);
		++*n;
		pthread_mutex_unlock(&lock);
		if (x % 64 == 0)
			usleep(100);
	}
	return NULL;
}

static int all_moved(unsigned long *last)
{
	int n = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < 4; i++)
		n += moved[i] > last[i];
	if (n == 4)
		memcpy(last, moved, sizeof(moved));
	pthread_mutex_unlock(&lock);
	return n == 4;
}

/* A thread may be kept waiting for the processor by others. */
static void threads(void)
{
	enum { PATIENCE = 400 };
	unsigned long last[4] = { 0 };
	pthread_t t;

	for (int i = 0; i < ACCOUNTS; i++)
		account[i] = EACH;
	for (int i = 0; i < 4; i++)
		if (pthread_create(&t, NULL, move, &moved[i]) != 0)
			exit(1);
	for (long step = 1;; step++) {
		int turns = 0, alive;
		long sum = 0;

		do
			usleep(50000);
		while (!(alive = all_moved(last)) && ++turns < PATIENCE);
		pthread_mutex_lock(&lock);
		for (int i = 0; i < ACCOUNTS; i++)
			sum += account[i];
		pthread_mutex_unlock(&lock);
		report(step, alive && sum == (long)ACCOUNTS * EACH);
	}
}

static void keep(const int *pipes, int from, int to)
{
	for (int i = 0; i < 6; i++)
		if (pipes[i] != from && pipes[i] != to)
			close(pipes[i]);
}

/* A child outlives its parent by a second or two. */
static void relay(int from, int to)
{
	long n;

	while (read(from, &n, sizeof(n)) == sizeof(n)) {
		n++;
		if (write(to, &n, sizeof(n)) != sizeof(n))
			break;
	}
	sleep(2);
	_exit(1);
}

static void family(void)
{
	int all[6], *a = all, *b = all + 2, *c = all + 4;

	if (pipe(a) != 0 || pipe(b) != 0 || pipe(c) != 0)
		exit(1);
	if (fork() == 0) {
		keep(all, a[0], b[1]);
		relay(a[0], b[1]);
	}
	if (fork() == 0) {
		keep(all, b[0], c[1]);
		relay(b[0], c[1]);
	}
	keep(all, a[1], c[0]);
	for (long step = 1;; step++) {
		long n = step, back = 0;
		int ok = write(a[1], &n, sizeof(n)) == sizeof(n) && read(c[0], &back, sizeof(back)) == sizeof(back) && back == n + 2;

		report(step, ok);
		usleep(20000);
	}
}

static void fill(uint64_t *p, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes / 8; i++)
		p[i] = mix(seed << 32 | i);
}

static int is_filled(const uint64_t *p, size_t bytes, uint64_t seed)
{
	size_t i = 0;

	while (i < bytes / 8 && p[i] == mix(seed << 32 | i))
		i++;
	return i == bytes / 8;
}

static void grow(size_t mib)
{
	static uint64_t *block[BLOCKS];
	uint64_t *first = malloc((mib << 20) + 8);

	fill(first, mib << 20, 0);
	for (long step = 1;; step++) {
		int ok = 1;

		if (step < BLOCKS) {
			block[step] = malloc(BLOCK);
			fill(block[step], BLOCK, (uint64_t)step);
		}
		for (long i = 1; i <= step && i < BLOCKS; i++)
			ok &= is_filled(block[i], BLOCK, (uint64_t)i);
		if (step % 16 == 0)
			ok &= is_filled(first, mib << 20, 0);
		report(step, ok);
		usleep(20000);
	}
}

/* ---- churn ---- */

enum { WRITERS = 4, PAGE = 4096, LAST = PAGE / 8 - 1 };

static struct writer {
	uint64_t *p;
	size_t pages;
	long step; /* the last whole one */
	int broken;
} writer[WRITERS];

/* Two words of each page, so that there are many steps in the time that it takes to read the pages. */
static void *churn_on(void *arg)
{
	struct writer *w = arg;

	for (uint64_t step = 1;; step++) {
		int ok = 1;

		for (size_t i = 0; i < w->pages; i++) {
			volatile uint64_t *page = w->p + i * (PAGE / 8);

			ok &= page[0] == step - 1 && page[LAST] == step - 1;
			page[0] = step;
			page[LAST] = step;
		}
		if (!ok)
			__atomic_store_n(&w->broken, 1, __ATOMIC_SEQ_CST);
		__atomic_store_n(&w->step, (long)step, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void churn(size_t mib)
{
	pthread_t t;

	for (int i = 0; i < WRITERS; i++) {
		writer[i].pages = (mib << 20) / PAGE / WRITERS;
		writer[i].p = aligned_alloc(PAGE, writer[i].pages * PAGE);
		memset(writer[i].p, 0, writer[i].pages * PAGE);
		if (pthread_create(&t, NULL, churn_on, &writer[i]) != 0)
			exit(1);
	}
	for (;;) {
		long step = 0;
		int ok = 1;

		usleep(10000);
		for (int i = 0; i < WRITERS; i++) {
			ok &= !__atomic_load_n(&writer[i].broken, __ATOMIC_SEQ_CST);
			step += __atomic_load_n(&writer[i].step, __ATOMIC_SEQ_CST);
		}
		report(step, ok);
	}
}

/* ---- map ---- */

static sem_t is_deep;

static void *filled(void *p, size_t bytes, uint64_t seed)
{
	if (p == MAP_FAILED)
		exit(1);
	fill(p, bytes, seed);
	return p;
}

/* Private pages of a file that was changed in memory. */
static void map_file(const char *folder, const char *name, size_t bytes, uint64_t seed, int gone)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
		exit(1);
	filled(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0), bytes, seed);
	close(fd);
	if (gone)
		unlink(path);
}

static void *wait_on_stack(void *arg)
{
	uint64_t deep[(256 << 10) / 8];

	fill(deep, sizeof(deep), 11);
	sem_post(&is_deep);
	for (;;)
		pause();
	return arg ? deep : NULL;
}

static void map(const char *folder)
{
	enum { KIB = 1 << 10, MIB = 1 << 20 };
	char huge[256];
	pthread_t t;
	int fd = memfd_create("odd name (deleted)", 0);

	memset(huge, 'n', 255);
	huge[255] = '\0';
	filled(sbrk(3 * MIB), 3 * MIB, 1);
	filled(mmap(NULL, 5 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 5 * MIB, 2);
	filled(mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), 2 * MIB, 3);
	if (fd < 0 || ftruncate(fd, MIB) != 0)
		exit(1);
	filled(mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MIB, 4);
	map_file(folder, "with a blank", 64 * KIB, 5, 0);
	map_file(folder, "gone", 128 * KIB, 6, 1);
	map_file(folder, "kept (deleted)", 32 * KIB, 7, 0);
	map_file(folder, "two\nlines", 16 * KIB, 8, 0);
	map_file(folder, huge, 256 * KIB, 9, 0);
	map_file(folder, "libodd.so.1", 48 * KIB, 10, 0);
	if (sem_init(&is_deep, 0, 0) != 0 || pthread_create(&t, NULL, wait_on_stack, NULL) != 0)
		exit(1);
	while (sem_wait(&is_deep) != 0)
		;
	for (long step = 1;; step++) {
		report(step, 1);
		usleep(20000);
	}
}

/* ---- breed ---- */

static void breed(void)
{
	for (long step = 1;; step++) {
		pid_t child = fork();

		if (child == 0) {
			usleep(3000);
			_exit(0);
		}
		if (step > 8)
			while (waitpid(-1, NULL, step % 2 ? 0 : WNOHANG) < 0 && errno == EINTR)
				;
		report(step, child > 0);
		usleep(2000); /* without a pause it would use up all numbers of a small machine in seconds, and others get theirs back */
	}
}

/* ---- twins ---- */

static void twins(size_t mib)
{
	size_t bytes = mib << 20, n = bytes / sizeof(double);
	double *a = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t r = 88172645463325252u;

	if (a == MAP_FAILED)
		exit(1);
	for (size_t i = 0; i < n; i++) {
		r ^= r << 13, r ^= r >> 7, r ^= r << 17;
		a[i] = 1 + (double)r / 1e22;
		a[n + i] = r % 32 ? a[i] : 2 - a[i];
	}
	for (long step = 1;; step++) {
		report(step, 1);
		usleep(20000);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";

	file = argc > 2 ? argv[2] : "";
	if (strcmp(mode, "threads") == 0)
		threads();
	if (strcmp(mode, "family") == 0)
		family();
	if (strcmp(mode, "grow") == 0 && argc > 3)
		grow((size_t)atol(argv[3]));
	if (strcmp(mode, "churn") == 0 && argc > 3)
		churn((size_t)atol(argv[3]));
	if (strcmp(mode, "map") == 0 && argc > 3)
		map(argv[3]);
	if (strcmp(mode, "breed") == 0)
		breed();
	if (strcmp(mode, "twins") == 0 && argc > 3)
		twins((size_t)atol(argv[3]));
	for (long i = 1; strcmp(mode, "count") == 0; i++) {
		printf("%ld\n", i);
		fflush(stdout);
		usleep(10000);
		if (i == atol(argv[2]))
			return 3;
	}
	return 2;
}
