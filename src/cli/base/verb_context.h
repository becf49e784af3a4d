/* The context of a running verb: its arguments, its output, and its open resources. */
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
	/* an epoch that the verb reads: a writer may drop it in the meantime */
	struct vv_verb_context_read {
		char store[PATH_MAX], lineage[VV_NAME_LINEAGE_MAX + 1];
		uint64_t epoch;
		bool named;
	} read[VV_VERB_CONTEXT_READS];
	size_t n_reads;
	bool begun; /* output was written that cannot be taken back */
	bool replaceable; /* output was written that another run replaces */
	bool again; /* the verb must be run again */
};

/* The options: files, environment, command line. */
int vv_verb_context_init(struct vv_verb_context *job, const struct vv_args *args);
void vv_verb_context_fini(struct vv_verb_context *job);

/* True for a command alone, and for the rank that reports for all. */
bool vv_verb_context_is_first(const struct vv_verb_context *job);

/* The exit status for an error: 1 for damage, 2 for any other error. A value that is no error is a
 * status already. */
int vv_verb_context_status(int rc);

/* Opens the store of the first operand, which must exist. */
int vv_verb_context_open_store(struct vv_verb_context *job);
/* The same, and the named lineage. */
int vv_verb_context_open_lineage(struct vv_verb_context *job, const struct vv_spec *spec, struct vv_lineage *out);
/* Opens another store, which the caller closes. */
int vv_verb_context_open_other(struct vv_verb_context *job, const char *url, struct vv_store **out);
/* Opens a session to write epochs: of all ranks, if there are several. The settings have been
 * handed on. */
int vv_verb_context_open_session(const struct vv_verb_context *job, const char *url, const char *lineage, struct varve **out);
/* The same for one epoch: tiers copy it if its number or the time is due, not because it is the
 * session's last one. */
int vv_verb_context_open_session_once(const struct vv_verb_context *job, const char *url, const char *lineage, struct varve **out);
/* Closes the session after work that ended with rc. Returns the error of the work, or of closing,
 * or rc. */
int vv_verb_context_close_session(struct varve *v, int rc);
int vv_verb_context_start_pool(struct vv_verb_context *job);
/* For verbs that have many files open: raises the limit of the process, if it may. */
void vv_verb_context_allow_files(void);
/* A session reads its own options: those of the command line reach it through the environment. */
int vv_verb_context_hand_on_settings(const struct vv_verb_context *job);
/* The same for an option that has a switch of its own. */
int vv_verb_context_set_option(struct vv_verb_context *job, const char *name, const char *value);
/* The same with the value of an option of the verb, if it was given. An error names that option. */
int vv_verb_context_take_option(struct vv_verb_context *job, const char *typed, const char *name);
/* Takes the lineage's lock, held until vv_verb_context_unlock or the end. */
int vv_verb_context_lock(struct vv_verb_context *job, const struct vv_lineage *lin);
void vv_verb_context_unlock(struct vv_verb_context *job);

/* The named epoch, or the newest, which the verb reads from now on. A named epoch need not
 * exist. */
int vv_verb_context_epoch(struct vv_verb_context *job, const struct vv_lineage *lin, struct vv_spec *spec, uint64_t *epoch);
/* After a listing whose epochs have all disappeared: 0 if the lineage has none now. Otherwise
 * VV_ENOENT, and job->again is set. */
int vv_verb_context_list_again(struct vv_verb_context *job, const struct vv_lineage *lin);
/* Determines the error to report: VV_ENOENT if an epoch that was read has been dropped, else rc. If
 * that was the newest epoch and there is no output yet, job->again is set: there is a newer one. A
 * warning reports files of the dropped epoch that may stay. */
int vv_verb_context_explain(struct vv_verb_context *job, int rc);

/* A row of the table of verbs. */
struct vv_cmd {
	const char *name;
	/* for the usage line; completion knows the words STORE, LINEAGE, EPOCH, FILE, DIR, ... */
	const char *operands;
	size_t min, max;      /* their number */
	const char *brief;
	const char *help;
	const struct vv_args_option *option;
	bool many;            /* several processes may share the work */
	bool damage_is_error; /* exit 2 for damage, because 1 means something else */
	/* The exit status, or an error. */
	int (*run)(struct vv_verb_context *job);
};

extern const struct vv_cmd vv_cmd_pack, vv_cmd_unpack, vv_cmd_watch, vv_cmd_ls, vv_cmd_show, vv_cmd_verify, vv_cmd_extract, vv_cmd_diff, vv_cmd_drop, vv_cmd_gc, vv_cmd_label,
	vv_cmd_request, vv_cmd_config, vv_cmd_image, vv_cmd_run, vv_cmd_report, vv_cmd_top, vv_cmd_cp, vv_cmd_mount, vv_cmd_rebuild, vv_cmd_completion;

#endif
