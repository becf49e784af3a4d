#include "support/writers.h"
#include "support/gen.h"
#include "vv_test.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { THREADS_MAX = 16, PAGE = 4096 };

struct writers {
	pthread_mutex_t lock;
	pthread_cond_t change;
	atomic_bool paused;
	bool end;
	unsigned n, idle, made;
	uint64_t seed;
	const struct area *area;
	size_t n_areas;
	atomic_uint_least64_t count;
	pthread_t thread[THREADS_MAX];
};

#define UNSEEN __attribute__((noinline, no_sanitize("thread")))

/* volatile: no call of memset comes of it, which the sanitizer would see. */
UNSEEN void writers_fill(uint8_t *p, uint8_t value, size_t n)
{
	for (volatile uint8_t *at = p; at < p + n; at++)
		*at = value;
}

UNSEEN static void mix(uint8_t *p, uint64_t value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((volatile uint8_t *)p)[i] = (uint8_t)(value >> 8 * (i % 8)) + (uint8_t)(i >> 3);
}

/* Few values for whole pages, zero among them, so that content comes back and occurs twice. */
void writers_write(uint64_t *seed, const struct area *area, size_t n_areas)
{
	const struct area *a = &area[gen_below(seed, n_areas)];
	size_t at = a->len ? gen_below(seed, a->len) : 0, left = a->len - at, n;
	uint8_t few = (uint8_t)gen_below(seed, 4);

	switch (a->len ? gen_below(seed, 8) : 8) {
	case 0: /* pages of one value */
		at = at / PAGE * PAGE;
		n = (1 + gen_below(seed, 5)) * PAGE;
		writers_fill(a->p + at, few, n < a->len - at ? n : a->len - at);
		break;
	case 1: /* across a border, wherever the region begins */
		n = 1 + gen_below(seed, 300);
		mix(a->p + at, gen_next(seed), n < left ? n : left);
		break;
	case 2:
		n = 1 + gen_below(seed, 3 * PAGE);
		mix(a->p + at, few, n < left ? n : left);
		break;
	case 8:
		break;
	default:
		mix(a->p + at, gen_next(seed), 8 < left ? 8 : left);
	}
}

static void *work(void *arg)
{
	struct writers *w = arg;
	uint64_t seed;

	pthread_mutex_lock(&w->lock);
	seed = w->seed + 1000003u * ++w->made;
	for (;;) {
		w->idle++;
		pthread_cond_broadcast(&w->change);
		while (atomic_load(&w->paused) && !w->end)
			pthread_cond_wait(&w->change, &w->lock);
		w->idle--;
		if (w->end)
			break;
		pthread_mutex_unlock(&w->lock);
		while (!atomic_load(&w->paused)) {
			writers_write(&seed, w->area, w->n_areas);
			atomic_fetch_add_explicit(&w->count, 1, memory_order_relaxed);
		}
		pthread_mutex_lock(&w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

struct writers *writers_new(unsigned threads, uint64_t seed, const struct area *area, size_t n_areas)
{
	struct writers *w = calloc(1, sizeof(*w));

	CHECK(w && threads <= THREADS_MAX);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->change, NULL);
	atomic_store(&w->paused, true);
	w->seed = seed;
	w->area = area;
	w->n_areas = n_areas;
	for (; w->n < threads; w->n++)
		CHECK(pthread_create(&w->thread[w->n], NULL, work, w) == 0);
	writers_pause(w);
	return w;
}

void writers_go(struct writers *w)
{
	pthread_mutex_lock(&w->lock);
	atomic_store(&w->paused, false);
	pthread_cond_broadcast(&w->change);
	pthread_mutex_unlock(&w->lock);
}

void writers_pause(struct writers *w)
{
	pthread_mutex_lock(&w->lock);
	atomic_store(&w->paused, true);
	while (w->idle < w->n)
		pthread_cond_wait(&w->change, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

uint64_t writers_count(const struct writers *w)
{
	return atomic_load(&w->count);
}

void writers_free(struct writers *w)
{
	pthread_mutex_lock(&w->lock);
	w->end = true;
	atomic_store(&w->paused, true);
	pthread_cond_broadcast(&w->change);
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < w->n; i++)
		pthread_join(w->thread[i], NULL);
	pthread_cond_destroy(&w->change);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
