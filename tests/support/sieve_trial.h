/* A sieve and the model side by side, over regions that a test changes. Each step is compared, restored, and remembered. */
#ifndef VV_TEST_SIEVE_TRIAL_H
#define VV_TEST_SIEVE_TRIAL_H

#include "support/sieve_model.h"
#include "support/sieve_suite.h"
#include <stdbool.h>

enum { TRIAL_REGIONS = 16, TRIAL_EPOCHS = 128 };

struct trial_region {
	uint64_t id;
	uint8_t *p; /* the test's; copied into the space before each step */
	size_t len;
	uint64_t *maybe; /* NULL: none */
};

struct trial_memory { /* what several trials look at */
	const struct sieve_suite *suite;
	struct trial_region region[TRIAL_REGIONS];
	size_t n;
	uint64_t next_id;
	uint64_t rng;
	uint8_t *there[TRIAL_REGIONS]; /* in the space, of this step */
	struct vv_span span[TRIAL_REGIONS];
};

struct trial {
	struct trial_memory *mem;
	struct vv_sieve_options opt;
	struct vv_sieve *sieve;
	struct sieve_model *model; /* NULL: too slow for what is tried; restored only */
	struct sieve_record history[TRIAL_EPOCHS];
	size_t n;
	struct sieve_state state; /* after the last step */
	bool has_state;
	uint32_t ordinal;
};

void trial_memory_init(struct trial_memory *m, const struct sieve_suite *suite);
void trial_memory_fini(struct trial_memory *m);
/* A region of zeros at the end of the list; one that is there gets another length, new bytes being zero; and goes. */
size_t trial_memory_add(struct trial_memory *m, size_t len);
void trial_memory_resize(struct trial_memory *m, size_t i, size_t len);
void trial_memory_remove(struct trial_memory *m, size_t i);
/* The space has what the regions hold. */
void trial_memory_show(struct trial_memory *m);

void trial_open(struct trial *t, struct trial_memory *m, struct vv_sieve_options opt);
void trial_close(struct trial *t);
/* A pass over what was shown: as the model has it, and restorable. */
const struct sieve_record *trial_step(struct trial *t);
/* The same with a sink that fails at its call number `at`; whether it came to that. Then the epoch is forgotten. */
bool trial_fail(struct trial *t, int at);
/* The last epoch did not count. */
void trial_forget(struct trial *t);
void trial_adopt(struct trial *t, const struct vv_number_range *usable, size_t n);
void trial_readopt(struct trial *t, const struct vv_number_range *usable, size_t n);

/* One trial for each method. */
struct trial_five {
	struct trial_memory *mem;
	struct trial t[5];
	bool forgot;
};

void trial_five_open(struct trial_five *f, struct trial_memory *m, uint32_t chunk, uint64_t memory);
void trial_five_close(struct trial_five *f);
/* Shows and steps; if nothing was forgotten, run has not more pieces than list and tree. */
void trial_five_step(struct trial_five *f);

#endif
