/* gpu.train: what a trainer sees: eight buffers in device memory, default options, a checkpoint after all, 10 % or 1 % of their pages have changed. Time inside
 * varve_checkpoint against a copy of as many new bytes to pinned memory, time until durable against a direct write of them, and a restart from the last one against a copy
 * of all bytes to the device. */
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "gpu_work.h"
#include "space/space.h"
#include "support.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BUFFERS = 8, EPOCHS = 5, PINNED = 256 << 20 };

struct model {
	const char *name;
	int halves; /* buffers of bfloat16; the others are float32 */
	uint8_t *buffer[BUFFERS];
	size_t n; /* bytes of a buffer */
};

struct session {
	varve *v;
	char store[3200];
};

static void step(const struct model *m, unsigned permille, unsigned seed)
{
	for (int i = 0; i < BUFFERS; i++)
		gpu_work_train(m->buffer[i], m->n, i < m->halves, permille, seed * BUFFERS + (unsigned)i);
}

static void open_session(struct session *s, const struct model *m)
{
	bench_check(varve_open(s->store, "train", "keep=2", &s->v), "varve_open");
	for (int i = 0; i < BUFFERS; i++) {
		enum varve_type type = i < m->halves ? VARVE_BF16 : VARVE_F32;
		size_t shape = m->n / (i < m->halves ? 2 : 4);
		char name[16];

		snprintf(name, sizeof(name), "buffer%d", i);
		bench_check(varve_protect_array(s->v, name, m->buffer[i], type, 1, &shape), "varve_protect_array");
	}
}

/* Seconds to copy n bytes to pinned memory, or back. */
static double copy_out(const struct model *m, size_t n, uint8_t *pinned)
{
	double sum = 0;

	for (size_t at = 0, some; at < n; at += some) {
		some = n - at < PINNED ? n - at : PINNED;
		some = some < m->n ? some : m->n;
		sum += gpu_work_to_host(pinned, m->buffer[0] + at % (m->n - some + 1), some);
	}
	return sum;
}

static double copy_in(const struct model *m, uint8_t *pinned)
{
	double begin = vv_clock_s();

	for (int i = 0; i < BUFFERS; i++)
		for (size_t at = 0; at < m->n; at += PINNED)
			bench_check(vv_space_cuda()->copy_in(m->buffer[i] + at, pinned, m->n - at < PINNED ? m->n - at : PINNED), "copy");
	return vv_clock_s() - begin;
}

/* Seconds to read all buffers on the device: the least in which changes are found. */
static double read_all(const struct model *m)
{
	double sum = 0;

	for (int i = 0; i < BUFFERS; i++)
		sum += gpu_work_read(m->buffer[i], m->n);
	return sum;
}

/* Seconds inside the call; *durable: until the epoch is stored. */
static double checkpoint(struct session *s, double *durable, struct varve_stats *st)
{
	double begin = vv_clock_s(), blocked;

	bench_check(varve_checkpoint(s->v), "varve_checkpoint");
	blocked = vv_clock_s() - begin;
	bench_check(varve_wait(s->v, varve_epoch(s->v)), "varve_wait");
	*durable = vv_clock_s() - begin;
	bench_check(varve_stats(s->v, st), "varve_stats");
	return blocked;
}

static void time_first(struct session *s, const struct model *m, uint8_t *pinned)
{
	struct varve_stats st;
	double durable, blocked, copy = copy_out(m, BUFFERS * m->n, pinned);

	for (double end = vv_clock_s() + 4; vv_clock_s() < end; usleep(1000)) /* the steps before the first checkpoint */
		step(m, 1000, 3);
	blocked = checkpoint(s, &durable, &st);
	bench_line("gpu.train", m->name, "first_blocked", blocked * 1e3, "ms");
	bench_at_most("gpu.train", m->name, "first_vs_copy", blocked / copy, "x", 1.5);
}

static void time_steady(struct bench *b, struct session *s, const struct model *m, unsigned permille, uint8_t *host, uint8_t *pinned)
{
	double blocked[EPOCHS], durable[EPOCHS], copy, read, direct, worst = 0;
	struct varve_stats st;
	char kase[64];
	size_t fresh;

	for (unsigned i = 0; i < EPOCHS; i++) {
		step(m, permille, permille * 100 + i);
		blocked[i] = checkpoint(s, &durable[i], &st);
		worst = i && blocked[i] > worst ? blocked[i] : worst; /* the first one after a change of the share is a line of its own */
	}
	snprintf(kase, sizeof(kase), "%s, %g %%", m->name, permille / 10.0);
	bench_line("gpu.train", kase, "blocked_after_change", blocked[0] * 1e3, "ms");
	fresh = (size_t)st.bytes_new / BENCH_PAGE * BENCH_PAGE;
	copy = copy_out(m, fresh, pinned);
	read = read_all(m);
	direct = bench_direct_write(b, host, fresh);
	bench_baseline("gpu.train", kase, "copy", copy * 1e3, "ms");
	bench_baseline("gpu.train", kase, "read", read * 1e3, "ms");
	bench_baseline("gpu.train", kase, "direct_write", direct * 1e3, "ms");
	bench_line("gpu.train", kase, "stored", (double)st.bytes_stored / (double)st.bytes_new, "x of the new bytes");
	bench_line("gpu.train", kase, "blocked", bench_median(blocked, EPOCHS) * 1e3, "ms");
	bench_line("gpu.train", kase, "durable", bench_median(durable, EPOCHS) * 1e3, "ms");
	bench_at_most("gpu.train", kase, "blocked_vs_copy", bench_median(blocked, EPOCHS) / copy, "x", 1.15);
	bench_line("gpu.train", kase, "worst_vs_copy", worst / copy, "x");
	bench_at_most("gpu.train", kase, "blocked_vs_read_and_copy", bench_median(blocked, EPOCHS) / (read + copy), "x", 1.15);
	bench_at_most("gpu.train", kase, "durable_vs_direct", bench_median(durable, EPOCHS) / direct, "x", 1.2);
}

static void time_restart(struct session *s, const struct model *m, uint8_t *pinned)
{
	uint64_t sum[BUFFERS];
	double copy, took;

	for (int i = 0; i < BUFFERS; i++) {
		sum[i] = gpu_work_sum(m->buffer[i], m->n);
		gpu_work_zero(m->buffer[i], m->n);
	}
	bench_load(s->store);
	copy = copy_in(m, pinned);
	open_session(s, m);
	took = vv_clock_s();
	bench_check(varve_restart(s->v, VARVE_LATEST), "varve_restart");
	took = vv_clock_s() - took;
	bench_check(varve_close(s->v), "varve_close");
	for (int i = 0; i < BUFFERS; i++)
		if (gpu_work_sum(m->buffer[i], m->n) != sum[i])
			bench_die("buffer %d is not what was stored", i);
	bench_line("gpu.train", m->name, "restart", took * 1e3, "ms");
	bench_at_most("gpu.train", m->name, "restart_vs_copy", took / copy, "x", 1.15);
}

static void train(struct bench *b, struct model *m, uint8_t *host, uint8_t *pinned)
{
	static const unsigned permille[] = { 1000, 100, 10 };
	struct session s;

	bench_settle(b, BUFFERS * m->n);
	for (int i = 0; i < BUFFERS; i++)
		gpu_work_zero(m->buffer[i], m->n);
	for (unsigned i = 0; i < 3; i++)
		step(m, 1000, i);
	snprintf(s.store, sizeof(s.store), "%s/train", b->dir);
	open_session(&s, m);
	time_first(&s, m, pinned);
	for (size_t i = 0; i < sizeof(permille) / sizeof(permille[0]); i++)
		time_steady(b, &s, m, permille[i], host, pinned);
	bench_check(varve_close(s.v), "varve_close");
	time_restart(&s, m, pinned);
	bench_remove(s.store);
}

int main(int argc, char **argv)
{
	struct model m[] = { { .name = "f32" }, { .name = "bf16 weights, f32 moments", .halves = 2 } };
	uint8_t *host, *pinned;
	struct bench b;
	size_t n;

	bench_open(&b, argc, argv);
	if (vv_space_cuda()->present())
		bench_skip(vv_err_last());
	n = bench_size(&b, 8ul << 30, 32ul << 30);
	host = bench_memory(n);
	pinned = vv_space_cuda()->rent(0, PINNED);
	if (!pinned)
		bench_die("no memory");
	for (int i = 0; i < BUFFERS; i++)
		m[0].buffer[i] = m[1].buffer[i] = gpu_work_new(n / BUFFERS);
	for (size_t k = 0; k < sizeof(m) / sizeof(m[0]); k++) {
		m[k].n = n / BUFFERS;
		train(&b, &m[k], host, pinned);
	}
	for (int i = 0; i < BUFFERS; i++)
		gpu_work_free(m[0].buffer[i]);
	vv_space_cuda()->give_back(0, pinned, PINNED);
	return bench_close(&b);
}
