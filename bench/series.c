#include "series.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ORBITS = 73, SHIFT = 4608, WORDS_PER_CHANGE = 500 };

void bench_series_free(struct bench_series *s)
{
	for (int i = 0; i < s->n; i++)
		munmap(s->state[i], s->bytes);
	*s = (struct bench_series){ 0 };
}

uint8_t *bench_series_state(const struct bench_series *s, int n, int i)
{
	return s->state[s->whole_run ? (i + 1) * s->n / n - 1 : i];
}

static void load(struct bench_series *s, const char *path)
{
	FILE *f = fopen(path, "rb");
	long n = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;

	if (n <= 0 || (s->n && (size_t)n != s->bytes))
		bench_die("'%s': %s", path, f ? "empty, or of another size than the one before" : strerror(errno));
	rewind(f);
	s->bytes = (size_t)n;
	s->state[s->n] = bench_memory(s->bytes);
	if (fread(s->state[s->n], 1, s->bytes, f) != s->bytes)
		bench_die("cannot read '%s'", path);
	fclose(f);
	s->n++;
}

/* ---- graphs ---------------------------------------------------------------------------------------------------------- */

static void count(const struct bench *b, const char *kind, const char *vertices, const char *times, const char *folder)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		dup2(STDERR_FILENO, STDOUT_FILENO); /* stdout is for results */
		execl(b->graphlets, b->graphlets, "--graph", kind, "--vertices", vertices, "--nodes", "5", "--checkpoints", times,
		      "--checkpoint-dump", folder, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		bench_die("'%s' failed with status %d", b->graphlets, status);
}

void bench_series_graph(struct bench *b, const char *kind, size_t vertices, struct bench_series *out)
{
	char number[24], times[24], folder[3200], path[3300];

	*out = (struct bench_series){ .type = VARVE_U32, .whole_run = true };
	snprintf(out->name, sizeof(out->name), "%s rows", kind);
	snprintf(number, sizeof(number), "%zu", vertices);
	snprintf(times, sizeof(times), "%d", BENCH_STATES);
	snprintf(folder, sizeof(folder), "%s/series", b->dir);
	count(b, kind, number, times, folder);
	for (int i = 1; i <= BENCH_STATES; i++) {
		snprintf(path, sizeof(path), "%s/%04d.bin", folder, i);
		load(out, path);
	}
	bench_remove(folder);
	out->shape[0] = out->bytes / sizeof(uint32_t) / ORBITS;
	out->shape[1] = ORBITS;
}

void bench_series_turned(const struct bench_series *s, struct bench_series *out)
{
	size_t rows = s->shape[0], width = s->shape[1];

	*out = *s;
	out->shape[0] = width;
	out->shape[1] = rows;
	snprintf(out->name, sizeof(out->name), "%.*s columns", (int)strcspn(s->name, " "), s->name);
	for (int i = 0; i < s->n; i++) {
		const uint32_t *from = (const uint32_t *)(const void *)s->state[i];
		uint32_t *to = bench_memory(s->bytes);

		for (size_t at = 0; at < rows * width; at++)
			to[at % width * rows + at / width] = from[at];
		out->state[i] = (uint8_t *)to;
	}
}

/* ---- arrays ---------------------------------------------------------------------------------------------------------- */

/* Numbers of 24 bits in 64: no two pieces of 32 bytes are the same, and yet there is something for a codec to do. */
static void draw(uint64_t *p, size_t words, uint64_t *seed)
{
	for (size_t i = 0; i < words; i++)
		p[i] = bench_random(seed) & 0xffffff;
}

static void edit(uint64_t *p, size_t words, uint64_t *seed)
{
	for (size_t i = 0; i < words / WORDS_PER_CHANGE; i++)
		draw(&p[bench_random(seed) % words], 1, seed);
}

static void step_sparse(uint64_t *p, size_t words, int i, uint64_t *seed)
{
	(void)i;
	edit(p, words, seed);
}

static void step_log(uint64_t *p, size_t words, int i, uint64_t *seed)
{
	size_t by = SHIFT / sizeof(*p);

	(void)i;
	memmove(p, p + by, (words - by) * sizeof(*p));
	draw(p + words - by, by, seed);
}

static void step_ping_pong(uint64_t *p, size_t words, int i, uint64_t *seed)
{
	size_t half = words / 2;
	uint64_t *to = i % 2 ? p + half : p, *from = i % 2 ? p : p + half;

	memcpy(to, from, half * sizeof(*p));
	edit(to, half, seed);
}

void bench_series_array(const char *pattern, size_t bytes, struct bench_series *out)
{
	void (*step)(uint64_t *, size_t, int, uint64_t *) =
		strcmp(pattern, "sparse") == 0 ? step_sparse : strcmp(pattern, "log") == 0 ? step_log : step_ping_pong;
	size_t words = bytes / sizeof(uint64_t) / 2 * 2;
	uint64_t seed = 7;

	*out = (struct bench_series){ .bytes = words * sizeof(uint64_t), .type = VARVE_U64, .n = BENCH_STATES, .shape = { 2, words / 2 } };
	snprintf(out->name, sizeof(out->name), "%s", pattern);
	for (int i = 0; i < out->n; i++) {
		uint64_t *p = bench_memory(out->bytes);

		out->state[i] = (uint8_t *)p;
		if (i == 0) {
			draw(p, words, &seed);
			continue;
		}
		memcpy(p, out->state[i - 1], out->bytes);
		step(p, words, i, &seed);
	}
}

/* ---- recorded -------------------------------------------------------------------------------------------------------- */

static int is_state(const struct dirent *e)
{
	size_t n = strlen(e->d_name);

	return n > 4 && strcmp(e->d_name + n - 4, ".bin") == 0;
}

/* A table of orbits as columns, if it can be one. */
static void describe(struct bench_series *s)
{
	size_t column = s->bytes / ORBITS;

	s->type = s->bytes % (ORBITS * sizeof(uint32_t)) == 0 ? VARVE_U32 : VARVE_U8;
	s->shape[0] = s->type == VARVE_U32 ? ORBITS : 1;
	s->shape[1] = s->type == VARVE_U32 ? column / sizeof(uint32_t) : s->bytes;
}

size_t bench_series_recorded(const char *folder, struct bench_series *out, size_t room)
{
	struct dirent **file = NULL;
	int files = scandir(folder, &file, is_state, versionsort);
	size_t n = 0;

	if (files < 0)
		bench_die("cannot read '%s': %s", folder, strerror(errno));
	for (int i = 0; i < files; i++) {
		int len = (int)strcspn(file[i]->d_name, ".");
		struct bench_series *s = n ? &out[n - 1] : NULL;
		char path[3400];

		if (!s || (int)strlen(s->name) != len || strncmp(s->name, file[i]->d_name, (size_t)len) != 0) {
			s = n < room ? &out[n++] : NULL;
			if (!s)
				bench_die("'%s' has more than %zu series", folder, room);
			*s = (struct bench_series){ 0 };
			snprintf(s->name, sizeof(s->name), "%.*s", len, file[i]->d_name);
		}
		snprintf(path, sizeof(path), "%s/%s", folder, file[i]->d_name);
		if (s->n < BENCH_STATES)
			load(s, path);
		describe(s);
		free(file[i]);
	}
	free(file);
	return n;
}
