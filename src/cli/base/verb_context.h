/* A verb at work: its arguments, its output, and what it has opened. */
#ifndef VV_CLI_BASE_VERB_CONTEXT_H
#define VV_CLI_BASE_VERB_CONTEXT_H

#include "base/conf.h"
#include "base/pool.h"
#include "cli/base/args.h"
#include "base/json.h"
#include "cli/base/out.h"
#include "cli/base/spec.h"
#include "cli/base/command_ranks.h"
#include "engine/lineage/catalog.h"
#include <limits.h>

enum { VV_VERB_CONTEXT_READS = 2 };

struct vv_verb_context {
	const struct vv_args *args;
	const struct vv_command_ranks *ranks; /* NULL: alone */
	struct vv_conf conf;
	struct vv_out out;   /* text; unused with --json */
	struct vv_json json; /* the one object, open */
	struct vv_store *store;
	struct vv_lock *lock;
	struct vv_pool *pool;
	struct vv_verb_context_read { /* an epoch that the verb reads: a writer may drop it meanwhile */
		char store[PATH_MAX], lineage[VV_NAME_LINEAGE_MAX + 1];
		uint64_t epoch;
		bool named;
	} read[VV_VERB_CONTEXT_READS];
	size_t n_reads;
	bool begun; /* something was put out that cannot be taken back */
	bool replaceable; /* something was put out that another run replaces */
	bool again; /* the verb is to be run once more */
};

/* The options: files, environment, command line. */
int vv_verb_context_init(struct vv_verb_context *job, const struct vv_args *args);
void vv_verb_context_fini(struct vv_verb_context *job);

/* Alone, or the rank that speaks for all. */
bool vv_verb_context_is_first(const struct vv_verb_context *job);

/* What the shell is told of an error: 1 of damage, 2 of any other; what is none is a status already. */
int vv_verb_context_status(int rc);

/* The store of the first operand; it must be there. */
int vv_verb_context_open_store(struct vv_verb_context *job);
/* Another one, the caller's to close. */
int vv_verb_context_open_other(struct vv_verb_context *job, const char *url, struct vv_store **out);
/* To lay epochs down: of all ranks, if there are several. The settings have been handed on. */
int vv_verb_context_open_session(const struct vv_verb_context *job, const char *url, const char *lineage, struct varve **out);
/* After work that ended with rc: its error, or that of closing, or rc. */
int vv_verb_context_close_session(struct varve *v, int rc);
int vv_verb_context_start_pool(struct vv_verb_context *job);
/* A session sets its own options up: those of the command line reach it by the environment. */
int vv_verb_context_hand_on_settings(const struct vv_verb_context *job);
/* The same for one that has a switch of its own. */
int vv_verb_context_set_option(struct vv_verb_context *job, const char *name, const char *value);
/* The same with the value of an option of the verb, if it was given. An error names that. */
int vv_verb_context_take_option(struct vv_verb_context *job, const char *typed, const char *name);
/* The lineage's lock, held until vv_verb_context_unlock or the end. */
int vv_verb_context_lock(struct vv_verb_context *job, const struct vv_lineage *lin);
void vv_verb_context_unlock(struct vv_verb_context *job);

/* The epoch that was named, or the newest, which the verb reads now. It need not be there if it was named. */
int vv_verb_context_epoch(struct vv_verb_context *job, const struct vv_lineage *lin, const struct vv_spec *spec, uint64_t *epoch);
/* Is the record of an epoch gone? Then its writer has dropped it, and what is missing of it is no damage. */
bool vv_verb_context_is_dropped(const struct vv_lineage *lin, uint64_t epoch);
/* After a listing of which no epoch is left: 0 if there is none. Else VV_ENOENT, and job->again is set. */
int vv_verb_context_list_again(struct vv_verb_context *job, const struct vv_lineage *lin);
/* What is to be said of a failure: VV_ENOENT if an epoch that was read is dropped by now, else rc. If that was the newest and nothing was put out yet,
 * job->again is set: there is a newer one. A warning tells of files of the dropped one that may stay. */
int vv_verb_context_explain(struct vv_verb_context *job, int rc);

/* A row of the table of verbs. */
struct vv_cmd {
	const char *name;
	const char *operands; /* for the usage line */
	size_t min, max;      /* how many */
	const char *brief;
	const char *help;
	const struct vv_args_option *option;
	bool many;            /* several processes may share the work */
	bool damage_is_error; /* exit 2 for damage, because 1 means something else */
	/* The exit status, or an error. */
	int (*run)(struct vv_verb_context *job);
};

extern const struct vv_cmd vv_cmd_pack, vv_cmd_unpack, vv_cmd_watch, vv_cmd_ls, vv_cmd_show, vv_cmd_verify, vv_cmd_extract, vv_cmd_diff, vv_cmd_drop, vv_cmd_gc,
	vv_cmd_request, vv_cmd_config, vv_cmd_image, vv_cmd_run, vv_cmd_report, vv_cmd_top;

#endif
