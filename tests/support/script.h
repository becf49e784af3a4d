/* A run that tests can interrupt anywhere: what the regions hold follows from the number of the step alone, so any epoch
 * can be compared with what it should be. Steps have content that stays, that is new, that comes back after its epochs
 * were dropped, that is zero, that occurs twice; regions grow, come and go. */
#ifndef VV_TEST_SCRIPT_H
#define VV_TEST_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <varve/varve.h>

enum { SCRIPT_REGIONS = 6, SCRIPT_MAX_EPOCHS = 128 };
#define SCRIPT_LINEAGE "run"
/* keep=2 drops and collects in nearly every step. The buffer holds the regions and not much more: each session writes all of it once. */
#define SCRIPT_OPTIONS "block=4096 threads=1 keep=2 log=error "
#define SCRIPT_SMALL SCRIPT_OPTIONS "chunk=512 buffer=512KiB "
#define SCRIPT_DELTA SCRIPT_OPTIONS "chunk=32 buffer=512KiB "
#define SCRIPT_BIG SCRIPT_OPTIONS "chunk=512 buffer=6MiB "

struct script {
	uint8_t *p[SCRIPT_REGIONS];
	bool big;   /* with a region that is large enough for space to be allocated ahead (with SCRIPT_BIG) */
	bool delta; /* with a region of so many runs that every second layer is a delta (with SCRIPT_DELTA) */
};

struct script_log { /* what a run knows: fit for shared memory, and for other threads to look at */
	unsigned n;
	struct {
		uint64_t epoch;
		unsigned step;
	} done[SCRIPT_MAX_EPOCHS]; /* checkpoints that were reported durable */
	unsigned trying;           /* the step under way */
};

/* What the run knows at this moment; it may be under way in another thread, which has begun its step. */
void script_log_copy(const struct script_log *log, struct script_log *out);

void script_init(struct script *s, bool big, bool delta);
void script_fini(struct script *s);

/* Declares the regions of the step; with `fill` they hold what they should, else rubbish for a restart to replace. */
int script_set(const struct script *s, varve *v, unsigned step, bool fill);
/* Do the regions hold what they should? */
bool script_is(const struct script *s, unsigned step);

/* Called when a call fails; the run goes on with the next step. */
typedef void (*script_failed)(void *arg, const char *call, int rc);

/* Opens a session (again, if that fails once) and lays down the steps; the session stays open. */
varve *script_run(const struct script *s, const char *store, const char *options, unsigned first, unsigned last,
		  struct script_log *log, script_failed failed, void *arg);
/* One step, to its end: 0 or the code. */
int script_step(const struct script *s, varve *v, unsigned step, struct script_log *log, script_failed failed, void *arg);

#endif
