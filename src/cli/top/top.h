/* The state of a lineage that is being written, for 'varve top'. It comes from the store alone, and
 * from the writer's process if that runs on this host. Nothing is locked. */
#ifndef VV_CLI_TOP_TOP_H
#define VV_CLI_TOP_TOP_H

#include "cli/base/verb_context.h"
#include "core/plan/interval.h"

enum { VV_TOP_EPOCHS = 60 }; /* the newest, that are shown */

struct vv_top_epoch {
	uint64_t epoch, parent, time_ns;
	uint32_t ranks;
	uint64_t memory, stored, layer;
	bool has_stats; /* the next two are known: the longest of several ranks */
	double blocked_s, flush_s; /* the second: until the layer was about to be published */
	/* until it was committed, uploaded and synced completely; 0: not reported yet */
	double durable_s;
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
	bool held;        /* a process has the lineage open for writing */
	char holder[200];
	struct vv_top_process process;
	uint64_t pending; /* the epoch that is being stored; 0: none is */
	size_t objects;   /* its number of objects */
	uint64_t bytes;   /* their bytes so far */
};

struct vv_top { /* over time */
	const struct vv_lineage *lin;
	struct vv_listing listing; /* of the last read, with the labels */
	struct vv_top_epoch epoch[VV_TOP_EPOCHS]; /* ascending */
	size_t n_epochs;
	uint64_t count;     /* of the epochs in the store */
	uint64_t older;     /* of those that are not shown */
	struct vv_top_read now, before;
	/* bytes per second written between the last two reads; < 0: not known */
	double rate;
	struct vv_interval due;  /* by the options of this command or of the writer */
	const char *due_by; /* their origin; NULL: none is set */
	uint64_t failed_ns; /* by the statistics file: the time of the last failed epoch */
	char failure[300];
};

/* Takes the options of this command. */
void vv_top_init(struct vv_top *t, const struct vv_lineage *lin, const struct vv_conf *conf);
void vv_top_fini(struct vv_top *t);
/* Reads the state again. */
int vv_top_read(struct vv_top *t, const struct vv_conf *conf);

/* Seconds between recent epochs; 0: not known. */
double vv_top_pace(const struct vv_top *t);
/* Seconds until the next epoch is due, less than 0 if it is late. Returns false if nothing is
 * known. Sets *sure if the options decide, not the recent pace. */
bool vv_top_next(const struct vv_top *t, double *in, bool *sure);
/* The expected size of the epoch in progress, by the epochs before it; 0: not known. */
uint64_t vv_top_expected(const struct vv_top *t);

#endif
