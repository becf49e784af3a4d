#include "base/clock.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/base/interrupt.h"
#include "cli/base/verb_context.h"
#include "cli/pack/watch_files.h"
#include "cli/pack/packed_before.h"
#include "cli/pack/pack_command.h"
#include "cli/pack/file_sets.h"
#include "cli/pack/retry_times.h"
#include "cli/base/text.h"
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The options of the verb that are numbers. */
static const struct vv_conf_item items[] = {
	{ "ranks", VV_CONF_COUNT, "0", NULL, 0, VV_MANIFEST_FILES, NULL },
	{ "settle", VV_CONF_DURATION, "2s", NULL, 0, 0, NULL },
};

struct growth { /* of a set whose files were all packed before another file came */
	char *key;
	size_t n; /* files, the last time, */
	unsigned times; /* of so many */
	bool steps; /* its last number is that of a step: each file is a set */
};

struct cmd_watch {
	struct vv_verb_context *job;
	const char *lineage, *pattern;
	struct vv_file_sets rule;
	size_t ranks;
	double settle;
	struct vv_watch_files watched;
	atomic_bool stop;
	struct vv_retry_times retries; /* of sets that could not be packed */
	struct growth *growth;
	size_t n_growth, growth_cap;
	/* files that earlier runs have packed and not deleted are to be deleted, */
	bool delete_left;
	struct vv_purge_count left; /* and the result of that */
};

/* ---- sets ------------------------------------------------------------------------------------ */

static struct growth *find_growth(const struct cmd_watch *w, const char *key)
{
	for (size_t i = 0; i < w->n_growth; i++)
		if (strcmp(w->growth[i].key, key) == 0)
			return &w->growth[i];
	return NULL;
}

static bool key_of(const struct cmd_watch *w, const char *name, char *key, size_t cap)
{
	const char *slash = strrchr(name, '/');
	const struct growth *g;

	if (w->pattern && fnmatch(w->pattern, slash && !strchr(w->pattern, '/') ? slash + 1 : name, 0) != 0)
		return false;
	if (strncmp(slash ? slash + 1 : name, ".varve-", 7) == 0 || !vv_manifest_is_name(name))
		return false; /* a file that 'varve unpack' has not finished */
	if (!vv_file_sets_key(&w->rule, name, key, cap))
		return false;
	g = find_growth(w, key);
	return !g || !g->steps || (size_t)snprintf(key, cap, "%s", name) < cap;
}

struct set {
	char *key;
	size_t n;    /* files, */
	size_t news; /* of them not packed yet */
	size_t fresh; /* of these never packed before */
	uint64_t lowest, highest; /* numbers in their names, */
	size_t n_numbers;         /* so many */
	bool is_step; /* a file that is a set by itself */
	bool busy;
	double last;
};

struct sets {
	struct set *v;
	size_t n, cap;
	struct vv_map by_key;
};

static void sets_fini(struct sets *s)
{
	for (size_t i = 0; i < s->n; i++)
		vv_mem_free(s->v[i].key);
	vv_mem_free(s->v);
	vv_map_fini(&s->by_key);
}

static void add_number(struct set *s, const char *name)
{
	uint64_t number;

	if (!vv_file_sets_number(name, &number))
		return;
	s->lowest = s->n_numbers && s->lowest < number ? s->lowest : number;
	s->highest = s->n_numbers && s->highest > number ? s->highest : number;
	s->n_numbers++;
}

static int sets_add(struct sets *s, const char *key, const struct vv_watch_files_file *f)
{
	size_t i = vv_map_get(&s->by_key, key);
	int rc = 0;

	if (i == VV_MAP_NONE) {
		char *copy = vv_mem_strdup(key);

		rc = copy ? vv_mem_room(&s->v, s->n, &s->cap, sizeof(*s->v)) : VV_ENOMEM;
		if (rc == 0)
			rc = vv_map_put(&s->by_key, copy, s->n);
		if (rc) {
			vv_mem_free(copy);
			return rc;
		}
		i = s->n++;
		s->v[i] = (struct set){ .key = copy };
	}
	s->v[i].n++;
	s->v[i].news += !f->done;
	s->v[i].fresh += !f->done && !f->known;
	s->v[i].is_step = strcmp(key, f->name) == 0;
	add_number(&s->v[i], f->name);
	s->v[i].busy |= f->busy;
	s->v[i].last = f->last > s->v[i].last ? f->last : s->v[i].last;
	return 0;
}

static int sort_out(struct cmd_watch *w, struct sets *s)
{
	char key[VV_MANIFEST_NAME + 16];
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < w->watched.n; i++)
		if (!w->watched.file[i].gone && key_of(w, w->watched.file[i].name, key, sizeof(key)))
			rc = sets_add(s, key, &w->watched.file[i]);
	return rc;
}

/* The time from which the set may be packed; a time that never comes if the set is incomplete. */
static double due_of(const struct cmd_watch *w, const struct set *s)
{
	bool complete = s->news && !s->busy && (w->ranks == 0 || s->n >= w->ranks || (s->is_step && s->n_numbers));
	double retry_at = vv_retry_times_get(&w->retries, s->key), settled_at = s->last + w->settle;

	return !complete ? 1e300 : settled_at > retry_at ? settled_at : retry_at;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* All known files of the set are packed and unchanged, and there are new ones. */
static bool grows(const struct set *s)
{
	return s->fresh && s->fresh == s->news && s->fresh < s->n;
}

/* Ranks are numbered from 0 or 1 on, without a gap, and are at most as many as --ranks, if it is
 * given. */
static bool are_ranks(const struct cmd_watch *w, const struct set *s)
{
	return s->lowest <= 1 && s->highest - s->lowest + 1 == s->n_numbers && (w->ranks == 0 || s->n <= w->ranks);
}

static int note_growth(struct cmd_watch *w, const struct set *s, struct growth **out)
{
	char *key = vv_mem_strdup(s->key);
	int rc = key ? vv_mem_room(&w->growth, w->n_growth, &w->growth_cap, sizeof(*w->growth)) : VV_ENOMEM;

	if (rc) {
		vv_mem_free(key);
		return rc;
	}
	w->growth[w->n_growth] = (struct growth){ .key = key };
	*out = &w->growth[w->n_growth++];
	return 0;
}

/* A late file may be that of the last rank. If its number is not a rank's, or if the set grows
 * again, the numbers are those of steps. Files packed before are then not packed again. *steps: the
 * numbers are steps, and the sets have changed. */
static int judge_growth(struct cmd_watch *w, const struct set *s, bool *steps)
{
	struct growth *g = find_growth(w, s->key);
	int rc = g ? 0 : note_growth(w, s, &g);

	if (rc || s->n <= g->n) /* it is a repeated attempt */
		return rc;
	g->n = s->n;
	g->times++;
	g->steps = *steps = !w->rule.given && s->n_numbers && (g->times > 1 || !are_ranks(w, s));
	if (w->job->args->quiet)
		return 0;
	if (g->steps)
		fprintf(stderr, "varve: set '%s' only ever grows: its numbers are taken for those of steps, and each new file is packed by itself (--set says otherwise)\n",
			vv_text_safe(s->key).s);
	else if (g->times == 2)
		fprintf(stderr, "varve: set '%s' only ever grows, and all of it is packed again each time: --set should tell its steps apart\n",
			vv_text_safe(s->key).s);
	return 0;
}

/* ---- files that the store has already -------------------------------------------------------- */

static struct vv_watch_files_file *file_here(const struct cmd_watch *w, const char *name)
{
	size_t at = vv_map_get(&w->watched.by_name, name);

	return at == VV_MAP_NONE ? NULL : &w->watched.file[at];
}

/* Deletes files left by a run that was killed, or that was not to delete. Files that differ from
 * the epoch are packed again, unless a later epoch has them. */
static int delete_left(struct cmd_watch *w, const struct vv_unpack *u, const struct vv_filelist *l)
{
	bool has = true;
	int rc = l->n ? vv_purge_left(w->job, u, l->file, l->n, &w->left, &has) : 0;

	for (size_t i = 0; i < l->n && !has; i++) {
		struct vv_watch_files_file *here = file_here(w, l->file[i].name);

		if (here)
			here->done = false;
	}
	return rc;
}

static int mark(void *arg, const struct vv_unpack *u)
{
	struct cmd_watch *w = arg;
	struct vv_filelist left = { .folder = w->watched.folder, .store = w->watched.store };
	char key[VV_MANIFEST_NAME + 16];
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < u->n_files; i++) {
		struct vv_unpack_file f = vv_unpack_at(u, i);
		struct vv_watch_files_file *here = file_here(w, f.file->name);

		if (!here || here->done || !vv_packed_before_is(&f, here->len, here->mtime))
			continue;
		here->done = here->known = true;
		if (w->delete_left && key_of(w, here->name, key, sizeof(key)))
			rc = vv_filelist_add_found(&left, here->name);
		if (rc != VV_ENOMEM) /* another process has deleted or replaced it */
			rc = 0;
	}
	if (rc == 0)
		rc = delete_left(w, u, &left);
	vv_filelist_fini(&left);
	return rc;
}

/* ---- packing --------------------------------------------------------------------------------- */

static int by_nature(const void *a, const void *b)
{
	return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

static int list_set(struct cmd_watch *w, const struct set *s, struct vv_filelist *l)
{
	char key[VV_MANIFEST_NAME + 16];
	const char **name = vv_mem_new(s->n, sizeof(*name));
	size_t n = 0;
	int rc = name ? 0 : VV_ENOMEM;

	for (size_t i = 0; rc == 0 && i < w->watched.n && n < s->n; i++)
		if (!w->watched.file[i].gone && key_of(w, w->watched.file[i].name, key, sizeof(key)) && strcmp(key, s->key) == 0)
			name[n++] = w->watched.file[i].name;
	if (rc == 0 && n)
		qsort(name, n, sizeof(*name), by_nature);
	l->folder = w->watched.folder;
	l->store = w->watched.store;
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = vv_filelist_add_found(l, name[i]);
	vv_mem_free(name);
	return rc;
}

/* Inotify reports nothing about a file that a program opened before the watch began, until the
 * program closes it. */
static bool is_written(const struct vv_filelist *l)
{
	bool written = false;

	for (size_t i = 0; !written && i < l->n; i++) {
		int fd = open(l->file[i].path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);

		written = fd >= 0 && vv_fs_is_written(fd);
		if (fd >= 0)
			close(fd);
	}
	return written;
}

static void mark_packed(struct cmd_watch *w, const struct vv_filelist *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct vv_watch_files_file *here = file_here(w, l->file[i].name);

		if (here)
			here->done = here->known = true;
	}
}

/* rc: whether the list is complete. */
static int pack_list(struct cmd_watch *w, const struct vv_filelist *l, int rc)
{
	const struct vv_pack_options opt = { .effort = VV_PACK_DEFAULT };

	vv_json_object(&w->job->json, NULL);
	if (rc == 0)
		rc = vv_pack_command_run(w->job, w->lineage, l, &opt, vv_args_value(w->job->args, "delete"));
	if (rc < 0)
		vv_json_text(&w->job->json, "error", vv_err_last());
	vv_json_end(&w->job->json);
	if (!w->job->args->json)
		vv_out_flush(&w->job->out);
	return rc;
}

/* A set that cannot be packed now (it is still changing, the store is full or in use) is tried
 * again. Other sets do not wait for it. If the store or the lineage does not fit the command, all
 * sets would fail, and the command ends. */
static int pack_set(struct cmd_watch *w, const struct set *s)
{
	struct vv_filelist l = { 0 };
	int rc = list_set(w, s, &l), end;

	if (rc == 0 && (l.n == 0 || is_written(&l))) { /* or another process has replaced all files */
		vv_filelist_fini(&l);
		return vv_retry_times_wait(&w->retries, s->key, w->settle > 0.2 ? w->settle : 0.2);
	}
	rc = pack_list(w, &l, rc);
	end = rc == VV_EINVAL || rc == VV_ENOMEM ? rc : 0;
	if (rc < 0) {
		fprintf(stderr, "varve: '%s' is tried again later: %s\n", vv_text_safe(s->key).s, vv_err_last());
		if (end == 0)
			end = vv_retry_times_failed(&w->retries, s->key);
	} else {
		vv_retry_times_succeeded(&w->retries, s->key);
		mark_packed(w, &l);
	}
	vv_filelist_fini(&l);
	return end;
}

/* Packs the sets that are due, the oldest first; *wait: the time until the next is due. */
static int pack_due(struct cmd_watch *w, double *wait)
{
	struct sets s = { 0 };
	const struct set *best = NULL;
	double now = vv_clock_s(), due = 1e300;
	bool other_sets = false;
	int rc = sort_out(w, &s);

	for (size_t i = 0; rc == 0 && i < s.n; i++)
		if (due_of(w, &s.v[i]) < due) {
			best = &s.v[i];
			due = due_of(w, best);
		}
	*wait = due - now < 60 ? due - now : 60;
	if (best && due <= now) {
		*wait = 0;
		rc = grows(best) ? judge_growth(w, best, &other_sets) : 0;
		if (rc == 0 && !other_sets)
			rc = pack_set(w, best);
	}
	sets_fini(&s);
	return rc;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int parse(struct cmd_watch *w)
{
	struct vv_conf c;
	int rc = vv_args_conf(w->job->args, items, sizeof(items) / sizeof(items[0]), &c);

	if (rc == 0) {
		w->ranks = (size_t)vv_conf_number(&c, "ranks");
		w->settle = vv_conf_real(&c, "settle");
	}
	vv_conf_fini(&c);
	w->pattern = vv_args_value(w->job->args, "pattern");
	return rc ? rc : vv_file_sets_init(&w->rule, "watch", vv_args_value(w->job->args, "set"));
}

static int watch(struct cmd_watch *w)
{
	double wait = 0;
	uint64_t keep = vv_conf_number(&w->job->conf, "keep");
	bool within = vv_conf_real(&w->job->conf, "keep-within") > 0;
	int rc = vv_watch_files_open(&w->watched, w->job->args->operand[2], w->job->args->operand[0]);

	if (rc == 0 && (keep || within) && vv_args_value(w->job->args, "delete") && !w->job->args->quiet)
		vv_log_warn("with %s = %s only the newest sets stay, and --delete removes the files of all", keep ? "keep" : "keep-within",
			    vv_conf_text(&w->job->conf, keep ? "keep" : "keep-within"));
	w->delete_left = vv_args_value(w->job->args, "delete");
	if (rc == 0)
		rc = vv_packed_before_each(w->job, w->lineage, w->delete_left, &w->stop, mark, w);
	if (rc == VV_EBUSY && w->delete_left) {
		fprintf(stderr, "varve: what earlier runs have left is not deleted: %s\n", vv_err_last());
		w->delete_left = false;
		rc = vv_packed_before_each(w->job, w->lineage, false, &w->stop, mark, w);
	}
	vv_purge_report_left(w->job, &w->left);
	vv_out_flush(&w->job->out);
	vv_json_array(&w->job->json, "epochs");
	while (rc == 0 && !atomic_load(&w->stop)) {
		rc = vv_watch_files_wait(&w->watched, wait);
		if (rc == 0)
			rc = pack_due(w, &wait);
	}
	vv_json_end(&w->job->json);
	vv_watch_files_close(&w->watched);
	return rc;
}

static int run(struct vv_verb_context *job)
{
	struct cmd_watch *w = vv_mem_new(1, sizeof(*w));
	struct vv_spec spec;
	uint32_t rank;
	int rc = w ? vv_spec_parse(job->args->operand[1], 0, &spec) : VV_ENOMEM;

	if (!w)
		return rc;
	w->job = job;
	w->lineage = spec.lineage;
	w->watched.fd = -1;
	if (rc == 0 && vv_command_ranks_is_many(&rank) && rank)
		rc = vv_err_set(VV_EINVAL, "watch: one is enough for all ranks: rank 0 watches, and this is rank %" PRIu32 "; start it without mpirun", rank);
	if (rc == 0)
		rc = parse(w);
	if (rc == 0)
		rc = vv_verb_context_hand_on_settings(job);
	vv_interrupt_set_stop(&w->stop);
	if (rc == 0)
		rc = watch(w);
	vv_interrupt_set_stop(NULL);
	vv_file_sets_fini(&w->rule);
	for (size_t i = 0; i < w->n_growth; i++)
		vv_mem_free(w->growth[i].key);
	vv_mem_free(w->growth);
	vv_retry_times_fini(&w->retries);
	vv_mem_free(w);
	return rc;
}

static const struct vv_args_option options[] = {
	{ "pattern", 0, "GLOB", "only files of this name (if it contains a /: of\n                               this path below DIR)" },
	{ "set", 0, "REGEX", "one set: files in whose paths the groups match\n                               the same text (only the last number differs)" },
	{ "ranks", 0, "N", "number of files of a complete set (complete when\n                               no more files arrive)" },
	{ "settle", 0, "TIME", "a complete set was not written for so long (2s)" },
	{ "delete", 0, NULL, "delete the files when they are durable, read back\n                               and found equal" },
	{ NULL, 0, NULL, NULL },
};

const struct vv_cmd vv_cmd_watch = {
	.name = "watch",
	.operands = "STORE LINEAGE DIR",
	.min = 3,
	.max = 3,
	.brief = "packs sets of files when they are complete",
	.help = "Waits for files below DIR and packs each complete set of files as an epoch. By\n"
		"default, files whose names differ only in the last number, the rank, are one\n"
		"set. If such a set only grows, the number is taken as a step, and each new file\n"
		"is a set. Existing files are packed first, unless the lineage has them. After an\n"
		"interrupt or SIGTERM the command finishes the set in progress and ends.",
	.option = options,
	.run = run,
};
