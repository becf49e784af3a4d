/* The memory for new data between epochs: it grows to the expected size, within the option stage, and shrinks slowly. */
#include "base/err.h"
#include "engine/grains/grain_sets.h"
#include "support/must.h"
#include "support/place.h"
#include <math.h>
#include <stdlib.h>

enum { STAGE = 20, LEAST = 16 }; /* blocks */

static size_t made, may_make;

static void *count_new(int device, size_t len)
{
	MUST(device == 3);
	if (made == may_make)
		return NULL;
	made++;
	return malloc(len);
}

static void count_free(int device, void *p, size_t len)
{
	(void)len;
	MUST(device == 3 && made > 0);
	made--;
	free(p);
}

/* Steps until nothing is left to do; the number of steps after which there was a pause. */
static int adjust_all(varve *v)
{
	double next;
	int pauses = 0;

	while (!isinf(next = vv_new_data_adjust(v)))
		pauses += next > 0;
	return pauses;
}

static void adjusted(void)
{
	struct vv_space counting = *vv_space_host();
	static uint8_t p[100000];
	struct vv_new_data *s;
	char store[PLACE_MAX];
	varve *v = NULL;

	counting.rent = count_new;
	counting.give_back = count_free;
	must_begin("memory for new data");
	place_path(store, "new-data");
	MUST(varve_open(store, "job", "mode=sync stage=160MiB", &v) == 0);
	MUST(isinf(vv_new_data_adjust(v))); /* no region needs it */
	MUST(varve_protect(v, "p", p, sizeof(p)) == 0 && varve_refine(v, "p", NULL, 512) == 0);
	s = &v->grains->new_data;
	MUST(adjust_all(v) == 0 && s->n_blocks == 0); /* the host's memory needs no preparation */

	may_make = 1000;
	vv_new_data_expect(s, &counting, 3, 1 << 20);
	MUST(adjust_all(v) == 0 && made == LEAST);
	vv_new_data_expect(s, &counting, 3, 1 << 30);
	vv_new_data_pause(v);
	MUST(vv_new_data_adjust(v) > 0 && made == LEAST); /* a restart comes first */
	vv_new_data_resume(v);
	MUST(adjust_all(v) == 0 && made == STAGE);

	s->adjust.in_epoch = true; /* with little new data */
	s->used = 1;
	MUST(isinf(vv_new_data_adjust(v)));
	vv_new_data_leave(v);
	MUST(made == STAGE);
	while (made > LEAST) {
		size_t before = made;

		s->adjust.in_epoch = true;
		vv_new_data_leave(v);
		adjust_all(v);
		MUST(before - made <= 4);
	}
	s->adjust.in_epoch = true; /* with much */
	s->used = STAGE - 1;
	vv_new_data_leave(v);
	MUST(adjust_all(v) == 0 && made == STAGE - 1);

	may_make = made; /* no more memory */
	vv_new_data_expect(s, &counting, 3, 1 << 30);
	MUST(adjust_all(v) == 0 && made == STAGE - 1);

	MUST(varve_checkpoint(v) == 0); /* new data of another space */
	MUST(made == 0);
	MUST(varve_close(v) == 0);
	place_remove(store);
}

/* Where nobody adjusts it between epochs, the memory of a large epoch is given back with the following ones. */
static void freed_by_epochs(const char *options)
{
	enum { N = 200 << 20 };
	uint8_t *p = malloc(N);
	char store[PLACE_MAX];
	varve *v = NULL;
	size_t most;

	must_begin("memory after a large epoch");
	MUST(p);
	place_path(store, "new-data");
	for (size_t i = 0; i < N; i += sizeof(i))
		memcpy(p + i, &i, sizeof(i));
	MUST(varve_open(store, "job", options, &v) == 0);
	MUST(varve_protect(v, "p", p, N) == 0 && varve_refine(v, "p", NULL, 512) == 0);
	MUST(varve_checkpoint(v) == 0 && varve_wait(v, 1) == 0);
	most = v->grains->new_data.n_blocks;
	MUST(most >= N / VV_NEW_DATA_BLOCK / 2 && most > LEAST);
	for (int e = 0; e < 100; e++) {
		p[0]++;
		MUST(varve_checkpoint(v) == 0 && varve_wait(v, VARVE_LATEST) == 0);
	}
	MUST(v->grains->new_data.n_blocks <= LEAST);
	MUST(varve_close(v) == 0);
	place_remove(store);
	free(p);
}

int main(void)
{
	adjusted();
	freed_by_epochs("mode=sync stage=1GiB codec=none");
	freed_by_epochs("mode=async stage=1GiB codec=none");
	return 0;
}
