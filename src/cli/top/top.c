#include "cli/top/top.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/top/top_process.h"
#include "engine/lineage/provenance.h"
#include "engine/lineage/layer_file.h"
#include "engine/options.h"
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	RANKS = 64,    /* whose layers are read for their times */
	LATELY = 8,    /* epochs that determine the pace */
	TAIL = 1 << 16 /* of a statistics file */
};

/* ---- epochs ---------------------------------------------------------------------------------- */

static double seconds(const struct vv_head *h, const char *stat)
{
	return (double)vv_head_stat(h, stat) / 1e9;
}

static void ask_layers(const struct vv_lineage *lin, const struct vv_commit *c, struct vv_top_epoch *e)
{
	/* layers read before may be gone, and their numbers reused by another session */
	vv_provenance_forget(lin);
	for (uint32_t r = 0; r < c->n_ranks && r < RANKS; r++) {
		struct vv_layer_file *f = NULL;

		if (vv_layer_file_open(lin, vv_run_layer(c->epoch, r), VV_LAYER_FILE_HEAD, &f) == 0) {
			e->has_stats |= f->head.n_stats > 0;
			e->blocked_s = fmax(e->blocked_s, seconds(&f->head, "ns.blocked"));
			e->flush_s = fmax(e->flush_s, seconds(&f->head, "ns.flush"));
			e->before_s = fmax(e->before_s, seconds(&f->head, "ns.before"));
		}
		vv_layer_file_close(f);
	}
	vv_err_clear();
}

static int read_epoch(const struct vv_lineage *lin, uint64_t epoch, struct vv_top_epoch *e)
{
	struct vv_commit c = { 0 };
	int rc = vv_catalog_commit(lin, epoch, &c);
	struct vv_commit_sums s = vv_commit_sum(&c);

	*e = (struct vv_top_epoch){
		.epoch = epoch,
		.parent = c.parent,
		.time_ns = c.time_ns,
		.ranks = c.n_ranks,
		.memory = s.memory,
		.stored = s.stored,
		.layer = s.file_len,
		.damaged = rc == VV_EDAMAGED,
	};
	if (rc == 0)
		ask_layers(lin, &c, e);
	vv_commit_fini(&c);
	return rc == VV_EDAMAGED ? 0 : rc;
}

static void keep(struct vv_top *t, const struct vv_top_epoch *e)
{
	if (t->n_epochs == VV_TOP_EPOCHS)
		memmove(t->epoch, t->epoch + 1, --t->n_epochs * sizeof(*t->epoch));
	for (size_t i = 0; i < t->n_epochs; i++)
		if (t->epoch[i].epoch == e->parent)
			t->epoch[i].durable_s = fmax(t->epoch[i].durable_s, e->before_s);
	t->epoch[t->n_epochs++] = *e;
}

/* Removes epochs that were dropped since then. */
static void forget(struct vv_top *t, const struct vv_listing *l)
{
	size_t n = 0, k = 0;

	for (size_t i = 0; i < t->n_epochs; i++) {
		while (k < l->n_epochs && l->epoch[k] < t->epoch[i].epoch)
			k++;
		if (k < l->n_epochs && l->epoch[k] == t->epoch[i].epoch)
			t->epoch[n++] = t->epoch[i];
	}
	t->n_epochs = n;
}

/* The first call lists everything, later ones only epochs that are not older than those shown. */
static int read_epochs(struct vv_top *t)
{
	uint64_t newest = t->n_epochs ? t->epoch[t->n_epochs - 1].epoch : 0;
	struct vv_listing l = { 0 };
	size_t first = 0;
	int rc = vv_catalog_list(t->lin, t->n_epochs ? t->epoch[0].epoch : 0, &l);

	if (rc)
		return rc;
	if (!t->n_epochs) {
		first = l.n_epochs > VV_TOP_EPOCHS ? l.n_epochs - VV_TOP_EPOCHS : 0;
		t->older = 0;
	}
	t->count = t->older + l.n_epochs;
	forget(t, &l);
	for (size_t i = first; rc == 0 && i < l.n_epochs; i++) {
		struct vv_top_epoch e;

		if (l.epoch[i] <= newest)
			continue;
		rc = read_epoch(t->lin, l.epoch[i], &e);
		if (rc == 0)
			keep(t, &e);
		rc = rc == VV_ENOENT ? 0 : rc; /* dropped since it was listed */
	}
	t->older = t->count - t->n_epochs;
	vv_catalog_listing_fini(&t->listing);
	t->listing = l;
	return rc;
}

/* ---- the epoch in progress ------------------------------------------------------------------- */

static void count_object(struct vv_top_read *w, const struct vv_name *n, uint64_t newest)
{
	uint64_t epoch = 0;
	uint32_t rank, last;

	if (vv_name_parse(n->name, &epoch, &rank) != VV_NAME_IS_LAYER && !vv_name_parse_bundle(n->name, &epoch, &rank, &last))
		return;
	/* gc replaces older ones; the rest of a dead writer is older, too */
	if (epoch <= newest || epoch < w->pending)
		return;
	if (epoch > w->pending) {
		w->pending = epoch;
		w->objects = 0;
		w->bytes = 0;
	}
	w->objects++;
	w->bytes += n->size;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct vv_name *)a)->name, ((const struct vv_name *)b)->name);
}

/* Layers that have their names, but no commit record yet, are in progress like those that are being
 * written. A layer that gets its name between the two listings is counted once. */
static int read_folder(struct vv_top *t, uint64_t folder, uint64_t newest)
{
	struct vv_names unfinished = { 0 }, there = { 0 };
	char dir[VV_NAME_MAX];
	int rc;

	vv_name_folder(dir, t->lin->name, folder);
	rc = vv_store_unfinished(t->lin->store, dir, &unfinished);
	if (rc == 0)
		rc = vv_store_list(t->lin->store, dir, &there);
	for (size_t i = 0; rc == 0 && i < unfinished.n; i++)
		if (!there.n || !bsearch(&unfinished.v[i], there.v, there.n, sizeof(*there.v), by_name))
			count_object(&t->now, &unfinished.v[i], newest);
	for (size_t i = 0; rc == 0 && i < there.n; i++)
		count_object(&t->now, &there.v[i], newest);
	vv_names_fini(&unfinished);
	vv_names_fini(&there);
	return rc;
}

static int read_pending(struct vv_top *t)
{
	uint64_t newest = t->n_epochs ? t->epoch[t->n_epochs - 1].epoch : 0;
	uint64_t here = newest / VV_NAME_EPOCHS_PER_FOLDER, next = (newest + 1) / VV_NAME_EPOCHS_PER_FOLDER;
	int rc = read_folder(t, here, newest);

	return rc || next == here ? rc : read_folder(t, next, newest);
}

static int read_writer(struct vv_top *t)
{
	struct vv_lock_holder holder;
	char object[VV_NAME_MAX];
	int rc;

	vv_name_lock(object, t->lin->name);
	rc = vv_store_holder(t->lin->store, object, &holder);
	if (rc < 0)
		return rc;
	t->now.held = rc == 1;
	snprintf(t->now.holder, sizeof(t->now.holder), "%s", rc == 1 ? holder.words : "");
	vv_top_process_read(rc == 1 ? holder.pid : 0, &t->now.process);
	return 0;
}

/* ---- when the next one is due ---------------------------------------------------------------- */

static bool is_set(const struct vv_interval *d)
{
	return d->interval > 0 || d->overhead > 0 || d->mtbf > 0;
}

static struct vv_interval due_of(const struct vv_conf *c)
{
	return (struct vv_interval){ vv_conf_real(c, "interval"), vv_conf_real(c, "overhead"), vv_conf_real(c, "mtbf") };
}

/* Reads the options from the writer's environment; options given in its calls are not visible. */
static void ask_process(struct vv_top *t)
{
	static const struct {
		const char *option, *variable;
	} asked[] = { { "interval", "VARVE_INTERVAL" }, { "overhead", "VARVE_OVERHEAD" }, { "mtbf", "VARVE_MTBF" } };
	struct vv_interval due;
	struct vv_conf c;
	char value[64];

	if (vv_options_load(&c, NULL) < 0) {
		vv_err_clear();
		return;
	}
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
		if (vv_top_process_variable(t->now.process.pid, asked[i].variable, value, sizeof(value)) &&
		    vv_conf_set(&c, asked[i].option, value, "the writer") < 0)
			vv_err_clear();
	due = due_of(&c);
	if (is_set(&due)) {
		t->due = due;
		t->due_by = "the writer's environment";
	}
	vv_conf_fini(&c);
}

double vv_top_pace(const struct vv_top *t)
{
	size_t n = t->n_epochs < LATELY + 1 ? t->n_epochs : LATELY + 1;
	uint64_t from = n < 2 ? 0 : t->epoch[t->n_epochs - n].time_ns, to = n < 2 ? 0 : t->epoch[t->n_epochs - 1].time_ns;

	return from && to > from ? (double)(to - from) / 1e9 / (double)(n - 1) : 0;
}

/* By the options, the interval begins at the end of the call. The epoch's time is that of its
 * beginning. Waiting before that time is part of `blocked`, but not of `flush`. */
bool vv_top_next(const struct vv_top *t, double *in, bool *sure)
{
	const struct vv_top_epoch *last = t->n_epochs ? &t->epoch[t->n_epochs - 1] : NULL;
	double after = last ? vv_interval_after(&t->due, last->blocked_s) : 0;

	*sure = after > 0;
	if (*sure)
		after += fmin(last->blocked_s, last->flush_s);
	else
		after = last ? vv_top_pace(t) : 0;
	if (after <= 0 && !*sure)
		return false;
	*in = after - ((double)t->now.wall_ns - (double)last->time_ns) / 1e9;
	return true;
}

uint64_t vv_top_expected(const struct vv_top *t)
{
	uint64_t sum = 0, n = 0;

	for (size_t i = t->n_epochs; i-- > 0 && n < 3;)
		if (!t->epoch[i].damaged) {
			sum += t->epoch[i].layer;
			n++;
		}
	return n ? sum / n : 0;
}

/* ---- the statistics file --------------------------------------------------------------------- */

/* Copies the text of a member of one of our own lines, as far as it fits; JSON escapes stay. A key
 * that ends with a quote belongs to a string. */
static bool member(const char *line, const char *key, char *out, size_t n)
{
	const char *at = strstr(line, key), *ends = key[strlen(key) - 1] == '"' ? "\"" : "\",}";
	size_t used = 0;

	for (at = at ? at + strlen(key) : NULL; at && *at && !strchr(ends, *at) && used + 1 < n; at++) {
		if (*at == '\\' && at[1])
			at++;
		out[used++] = *at;
	}
	if (at && n)
		out[used] = '\0';
	return at;
}

static void take_success(struct vv_top *t, const char *line)
{
	char epoch[32], took[32];
	double s;

	if (!member(line, "\"epoch\":", epoch, sizeof(epoch)) || !member(line, "\"seconds_flush\":", took, sizeof(took)))
		return;
	s = strtod(took, NULL);
	for (size_t i = 0; i < t->n_epochs && isfinite(s); i++)
		if (t->epoch[i].epoch == strtoull(epoch, NULL, 10))
			t->epoch[i].durable_s = fmax(t->epoch[i].durable_s, s);
}

/* Seconds since 1970 from a file, which may have any value; never 0, which stands for no
 * failure. */
static uint64_t moment(double s)
{
	return s > 0 && s < 1e10 ? (uint64_t)(s * 1e9) + 1 : 1;
}

static void take_line(struct vv_top *t, const char *line)
{
	char lineage[VV_NAME_LINEAGE_MAX + 1], time[32];

	if (!member(line, "\"lineage\":\"", lineage, sizeof(lineage)) || strcmp(lineage, t->lin->name) != 0)
		return;
	if (!strstr(line, "\"ok\":false")) {
		take_success(t, line);
		return;
	}
	if (member(line, "\"time\":", time, sizeof(time)))
		t->failed_ns = moment(strtod(time, NULL));
	if (!member(line, "\"error\":\"", t->failure, sizeof(t->failure)))
		snprintf(t->failure, sizeof(t->failure), "no reason is given");
}

/* The option stats names a file that the writer appends to. The last lines give the failures, and
 * the times of the other epochs. */
static void read_statistics(struct vv_top *t, const char *path)
{
	char *text = path[0] ? vv_mem_new(TAIL + 1, 1) : NULL;
	int fd = text ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
	struct stat st;
	ssize_t n = -1;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		n = pread(fd, text, TAIL, st.st_size > TAIL ? st.st_size - TAIL : 0);
	for (char *save = NULL, *line = n > 0 ? strtok_r(text, "\n", &save) : NULL; line; line = strtok_r(NULL, "\n", &save))
		take_line(t, line);
	if (fd >= 0)
		close(fd);
	vv_mem_free(text);
}

/* ---- all of it ------------------------------------------------------------------------------- */

void vv_top_init(struct vv_top *t, const struct vv_lineage *lin, const struct vv_conf *conf)
{
	*t = (struct vv_top){ .lin = lin, .rate = -1, .due = due_of(conf) };
	if (is_set(&t->due))
		t->due_by = "the options here";
}

void vv_top_fini(struct vv_top *t)
{
	vv_catalog_listing_fini(&t->listing);
}

/* The rate by the growth of the pending epoch; or, if nothing of it is visible, by all writes of
 * the writer. */
static void measure(struct vv_top *t)
{
	const struct vv_top_read *a = &t->before, *b = &t->now;
	double passed = b->at_s - a->at_s;

	t->rate = -1;
	if (a->at_s == 0 || passed <= 0)
		return;
	if (b->pending && a->pending == b->pending)
		t->rate = b->bytes >= a->bytes ? (double)(b->bytes - a->bytes) / passed : 0;
	else if (b->pending)
		t->rate = (double)b->bytes / passed;
	else if (b->process.pid && a->process.pid == b->process.pid && a->process.has_written && b->process.has_written)
		t->rate = b->process.written >= a->process.written ? (double)(b->process.written - a->process.written) / passed : 0;
}

int vv_top_read(struct vv_top *t, const struct vv_conf *conf)
{
	int rc;

	t->before = t->now;
	t->now = (struct vv_top_read){ .at_s = vv_clock_s(), .wall_ns = vv_clock_wall_ns() };
	rc = read_writer(t);
	if (rc == 0)
		rc = read_epochs(t);
	if (rc == 0)
		rc = read_pending(t);
	if (rc)
		return rc;
	if (t->now.process.pid && t->now.process.pid != t->before.process.pid)
		ask_process(t);
	read_statistics(t, vv_conf_text(conf, "stats"));
	measure(t);
	return 0;
}
