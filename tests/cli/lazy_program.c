/* Programs whose memory comes late. Each fills MIB of memory with what can be told from the address alone, says "0 ok", and waits for the file FILE.go.
 * Then it looks at its pages in random order, each once, in rounds, and writes "ROUND ok" or "ROUND broken" into FILE.
 *   alone FILE MIB     one thread
 *   threads FILE MIB   four of them
 *   forks FILE MIB     and children that it makes meanwhile
 *   moves FILE MIB     and before that moves a part of it, gives a part back (zeros) and lets go of another one
 *   family FILE MIB    two children from the start, with memory of their own */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, WORDS = PAGE / 8, THREADS = 4, PART = 64 };

static const char *file;
static uint64_t *memory;
static size_t pages;
static size_t lo_moved, lo_zero; /* pages of which PART are elsewhere, or zeros */
static uint64_t *moved;

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static void report(long step, int ok)
{
	char text[32];
	int fd = open(file, O_WRONLY | O_CREAT, 0644);

	memset(text, ' ', sizeof(text));
	text[snprintf(text, sizeof(text) - 1, "%ld %s", step, ok ? "ok" : "broken")] = ' ';
	text[sizeof(text) - 1] = '\n';
	if (fd < 0 || pwrite(fd, text, sizeof(text), 0) != sizeof(text) || close(fd) != 0 || !ok)
		exit(1);
}

/* Every other page is noise, which is stored as it is; the others can be coded; and some are the same. */
static uint64_t word(size_t page, size_t i)
{
	return page % 2 ? mix((uint64_t)page << 20 | i) : page % 16 == 0 ? i * 3 : page * 1000 + i;
}

static void fill(void)
{
	for (size_t p = 0; p < pages; p++)
		for (size_t i = 0; i < WORDS; i++)
			memory[p * WORDS + i] = word(p, i);
}

static int is_right(size_t page)
{
	const uint64_t *p = memory + page * WORDS;
	size_t i = 0;
	int zero = lo_zero && page >= lo_zero && page < lo_zero + PART;

	if (lo_moved && page >= lo_moved && page < lo_moved + PART)
		p = moved + (page - lo_moved) * WORDS;
	while (i < WORDS && p[i] == (zero ? 0 : word(page, i)))
		i++;
	return i == WORDS;
}

static size_t divisor(size_t a, size_t b)
{
	return b ? divisor(b, a % b) : a;
}

/* Each page once, in an order that hops about: a step that has no factor in common with their number. */
static int look(uint64_t seed)
{
	size_t step = mix(seed) % pages | 1, at = mix(seed + 1) % pages;
	int ok = 1;

	while (divisor(step, pages) != 1)
		step += 2;
	for (size_t i = 0; i < pages; i++, at = (at + step) % pages)
		ok &= is_right(at);
	return ok;
}

static void *look_thread(void *arg)
{
	return look((uint64_t)(uintptr_t)arg) ? arg : NULL;
}

static int look_threads(void)
{
	pthread_t t[THREADS];
	int ok = 1;

	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, look_thread, (void *)(i + 1)) != 0)
			exit(1);
	for (int i = 0; i < THREADS; i++) {
		void *got;

		pthread_join(t[i], &got);
		ok &= got != NULL;
	}
	return ok;
}

/* It says how it went by its end; and, if its parent does not live to hear of it, that it was wrong. */
static int look_as_child(uint64_t seed)
{
	if (look(seed))
		return 7;
	report(-1, 0);
	return 1;
}

/* A child that has reported wrong pages itself, or was killed with those who bring pages, leaves its report as the last one: we are killed, too. */
static int ends_as_it_may(int status)
{
	while ((WIFEXITED(status) && WEXITSTATUS(status) != 7) || (WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGBUS)))
		pause();
	return WIFEXITED(status);
}

static int look_forks(uint64_t seed)
{
	pid_t child[3];
	int ok = 1, status;

	for (int i = 0; i < 3; i++) {
		child[i] = fork();
		if (child[i] == 0)
			_exit(look_as_child(seed + 10 + (uint64_t)i));
	}
	ok &= look(seed);
	for (int i = 0; i < 3; i++)
		if (waitpid(child[i], &status, 0) != child[i] || !ends_as_it_may(status))
			ok = 0;
	return ok;
}

/* The last part is let go of, so there are fewer pages then. */
static void move(void)
{
	void *to = mmap(NULL, PART * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	moved = mremap(memory + pages / 4 * WORDS, PART * PAGE, PART * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	if (moved == MAP_FAILED || madvise(memory + pages / 2 * WORDS, PART * PAGE, MADV_DONTNEED) != 0 ||
	    munmap(memory + (pages - PART) * WORDS, PART * PAGE) != 0)
		exit(1);
	lo_moved = pages / 4;
	lo_zero = pages / 2;
	pages -= PART;
}

static void await_go(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s.go", file);
	while (access(path, F_OK) != 0)
		usleep(1000);
}

static void start_family(void)
{
	for (int i = 0; i < 2; i++)
		if (fork() == 0) {
			for (size_t p = (size_t)i; p < pages; p += 5) /* its own by now, and the same again */
				memory[p * WORDS] = word(p, 0);
			await_go();
			_exit(look_as_child((uint64_t)i + 3));
		}
}

static int end_family(void)
{
	int ok = look(1);

	for (int i = 0, status; i < 2; i++)
		ok &= wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 7;
	return ok;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 3 ? argv[1] : "";
	size_t mib = argc > 3 ? (size_t)atol(argv[3]) : 0;

	file = argc > 3 ? argv[2] : "";
	pages = (mib << 20) / PAGE;
	memory = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!mib || memory == MAP_FAILED)
		return 2;
	fill();
	if (strcmp(mode, "family") == 0)
		start_family();
	report(0, 1);
	await_go();
	if (strcmp(mode, "moves") == 0)
		move();
	if (strcmp(mode, "family") == 0)
		report(1, end_family());
	for (long round = strcmp(mode, "family") == 0 ? 2 : 1;; round++) {
		int ok = strcmp(mode, "threads") == 0 ? look_threads() : strcmp(mode, "forks") == 0 ? look_forks((uint64_t)round) : look((uint64_t)round);

		report(round, ok);
		usleep(10000);
	}
}
