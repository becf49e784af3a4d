/* What 'varve top' sees of a lineage that is being written: from the store alone, and of the writer's process where it runs
 * on this host. Nothing is locked. */
#ifndef VV_CLI_TOP_TOP_H
#define VV_CLI_TOP_TOP_H

#include "cli/base/verb_context.h"
#include "core/plan/interval.h"

enum { VV_TOP_EPOCHS = 60 }; /* the newest, that are shown */

struct vv_top_epoch {
	uint64_t epoch, parent, time_ns;
	uint32_t ranks;
	uint64_t memory, stored, layer;
	bool has_stats; /* the next two are known: of several ranks the longest */
	double blocked_s, flush_s; /* the second: until the layer was about to be published */
	double durable_s; /* until it counted, all of it uploaded and synced; 0: nobody has told yet */
	double before_s;  /* the same of the parent */
	bool damaged;
};

struct vv_top_process { /* of the writer */
	long pid; /* 0: not on this host */
	char name[64];
	uint64_t resident; /* bytes */
	bool has_written;
	uint64_t written;  /* so far, by all its writes */
};

struct vv_top_read { /* at one moment */
	double at_s;      /* on the monotonic clock */
	uint64_t wall_ns;
	bool held;        /* somebody has the lineage open for writing */
	char holder[200];
	struct vv_top_process process;
	uint64_t pending; /* the epoch that is being stored; 0: none is */
	size_t objects;   /* and in how many objects */
	uint64_t bytes;   /* that are there so far */
};

struct vv_top { /* over time */
	const struct vv_lineage *lin;
	struct vv_top_epoch epoch[VV_TOP_EPOCHS]; /* ascending */
	size_t n_epochs;
	uint64_t count;     /* of the epochs in the store */
	uint64_t older;     /* of those that are not shown */
	struct vv_top_read now, before;
	double rate;        /* bytes per second that were written between the last two looks; < 0: not known */
	struct vv_interval due;  /* by the options, here or of the writer */
	const char *due_by; /* where they come from; NULL: none is set */
	uint64_t failed_ns; /* by the statistics file: when an epoch failed last */
	char failure[300];
};

/* The options as they are here. */
void vv_top_init(struct vv_top *t, const struct vv_lineage *lin, const struct vv_conf *conf);
/* Looks again. */
int vv_top_read(struct vv_top *t, const struct vv_conf *conf);

/* Seconds from one epoch to the next, lately; 0: not known. */
double vv_top_pace(const struct vv_top *t);
/* Seconds until the next one is due, less than 0 if it is late; false: nothing is known. *sure: by the options, not by habit. */
bool vv_top_next(const struct vv_top *t, double *in, bool *sure);
/* What the epoch under way will take, by those before it; 0: not known. */
uint64_t vv_top_expected(const struct vv_top *t);

#endif
