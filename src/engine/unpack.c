#include "engine/unpack.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/abreast.h"
#include "engine/restore.h"
#include "engine/sparse.h"
#include "engine/target.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANIFEST_MOST = 1 << 30 }; /* bytes */

/* ---- the files of an epoch ---------------------------------------------------------------------------------------- */

void vv_unpack_close(struct vv_unpack *u)
{
	for (size_t i = 0; i < u->n_ranks; i++) {
		vv_table_fini(&u->rank[i].table);
		vv_manifest_fini(&u->rank[i].manifest);
	}
	vv_mem_free(u->rank);
	vv_mem_free(u->by_name);
	*u = (struct vv_unpack){ 0 };
}

static int read_manifest(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_table_region *r, struct vv_manifest *out)
{
	struct vv_want want = { &r->runs, 0, r->shape.len, NULL, NULL };
	int rc;

	if (r->shape.len > MANIFEST_MOST)
		return vv_err_set(VV_EDAMAGED, "list of files: %" PRIu64 " bytes are too many", r->shape.len);
	want.to = vv_mem_new((size_t)r->shape.len, 1);
	if (!want.to)
		return VV_ENOMEM;
	rc = vv_restore_read(lin, pool, &want, 1);
	if (rc == 0)
		rc = vv_manifest_get(out, want.to, (size_t)want.len);
	vv_mem_free(want.to);
	return rc;
}

int vv_unpack_manifest(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_table *t, struct vv_manifest *out, bool *has)
{
	size_t list = vv_table_find(t, VV_MANIFEST_REGION);
	int rc;

	*has = list < t->n;
	if (!*has)
		return 0;
	rc = read_manifest(lin, pool, &t->region[list], out);
	for (size_t i = 0; rc == 0 && i < out->n_files; i++)
		if (out->file[i].region >= t->n || out->file[i].region == list)
			rc = vv_err_set(VV_EDAMAGED, "list of files: '%s' is said to be region %" PRIu32 ", which is none", out->file[i].name,
					out->file[i].region);
	return rc == VV_EDAMAGED ? vv_err_context(rc, "epoch %" PRIu64 " of lineage '%s', rank %" PRIu32, t->epoch, lin->name, t->rank) : rc;
}

/* As if '/' were the lowest of all letters: what is below a folder comes right behind a file of the folder's name. */
static int compare_names(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (*a == *b)
		return 0;
	if (!*a || !*b)
		return *a ? 1 : -1;
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

static int by_name(const void *a, const void *b, void *arg)
{
	const struct vv_unpack *u = arg;

	return compare_names(vv_unpack_at(u, *(const size_t *)a).file->name, vv_unpack_at(u, *(const size_t *)b).file->name);
}

static bool is_below(const char *name, const char *folder)
{
	size_t n = strlen(folder);

	return strncmp(name, folder, n) == 0 && name[n] == '/';
}

static int sort_names(struct vv_unpack *u)
{
	u->by_name = vv_mem_new(u->n_files, sizeof(*u->by_name));
	if (!u->by_name)
		return VV_ENOMEM;
	for (size_t i = 0; i < u->n_files; i++)
		u->by_name[i] = i;
	if (u->n_files)
		qsort_r(u->by_name, u->n_files, sizeof(*u->by_name), by_name, u);
	for (size_t i = 1; i < u->n_files; i++) {
		struct vv_unpack_file a = vv_unpack_at(u, u->by_name[i - 1]), b = vv_unpack_at(u, u->by_name[i]);

		if (strcmp(a.file->name, b.file->name) == 0)
			return vv_err_set(VV_EDAMAGED, "epoch %" PRIu64 " has '%s' twice, of ranks %" PRIu32 " and %" PRIu32, u->epoch, a.file->name,
					  a.rank, b.rank);
		if (is_below(b.file->name, a.file->name))
			return vv_err_set(VV_EDAMAGED, "epoch %" PRIu64 " has '%s' as a file and, for '%s', as a folder", u->epoch, a.file->name,
					  b.file->name);
	}
	return 0;
}

int vv_unpack_open(const struct vv_lineage *lin, uint64_t epoch, struct vv_pool *pool, struct vv_unpack *out)
{
	struct vv_unpack u = { .lineage = lin, .epoch = epoch };
	struct vv_commit c = { 0 };
	bool has = false;
	int rc = vv_catalog_commit(lin, epoch, &c);

	if (rc == 0) {
		u.rank = vv_mem_new(c.n_ranks, sizeof(*u.rank));
		rc = u.rank ? 0 : VV_ENOMEM;
	}
	for (; rc == 0 && u.n_ranks < c.n_ranks; u.n_ranks++) {
		struct vv_unpack_rank *r = &u.rank[u.n_ranks];

		rc = vv_table_load_on(lin, pool, epoch, (uint32_t)u.n_ranks, &r->table);
		if (rc == 0)
			rc = vv_unpack_manifest(lin, pool, &r->table, &r->manifest, &has);
		r->first = u.n_files;
		u.n_files += r->manifest.n_files;
		if (rc == 0 && !has && u.n_ranks == 0)
			rc = vv_err_set(VV_EINVAL, "epoch %" PRIu64 " of lineage '%s' was not packed from files ('varve show' lists its regions, "
					"'varve extract' takes one out)", epoch, lin->name);
	}
	vv_commit_fini(&c);
	if (rc == 0)
		rc = sort_names(&u);
	if (rc)
		vv_unpack_close(&u);
	else
		*out = u;
	return rc;
}

/* The last rank whose first file is not behind i, and which has any. */
struct vv_unpack_file vv_unpack_at(const struct vv_unpack *u, size_t i)
{
	size_t lo = 0, hi = u->n_ranks;
	const struct vv_unpack_rank *r;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (u->rank[mid].first <= i)
			lo = mid;
		else
			hi = mid;
	}
	r = &u->rank[lo];
	return (struct vv_unpack_file){ &r->manifest.file[i - r->first], &r->table.region[r->manifest.file[i - r->first].region],
					(uint32_t)lo };
}

static size_t find(const struct vv_unpack *u, const char *name)
{
	size_t lo = 0, hi = u->n_files;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (compare_names(vv_unpack_at(u, u->by_name[mid]).file->name, name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Names of files whose last part is the same, else the first ones. */
static int not_there(const struct vv_unpack *u, const char *name)
{
	const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
	char list[300] = "";
	size_t used = 0, n = 0;

	for (int pass = 0; pass < 2 && n == 0; pass++)
		for (size_t i = 0; i < u->n_files && used < sizeof(list) && n < 8; i++) {
			const char *other = vv_unpack_at(u, u->by_name[i]).file->name, *cut = strrchr(other, '/');

			if (pass == 0 && !strstr(cut ? cut + 1 : other, last))
				continue;
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s'%s'", n ? ", " : "", other);
			n++;
		}
	return vv_err_set(VV_ENOENT, "epoch %" PRIu64 " of lineage '%s' has no file '%s'; it has %zu, such as %s", u->epoch, u->lineage->name, name,
			  u->n_files, n ? list : "none");
}

int vv_unpack_find(const struct vv_unpack *u, const char *name, struct vv_unpack_file *out)
{
	size_t i = find(u, name);

	if (i == u->n_files || strcmp(vv_unpack_at(u, u->by_name[i]).file->name, name) != 0)
		return not_there(u, name);
	*out = vv_unpack_at(u, u->by_name[i]);
	return 0;
}

/* ---- which of them ------------------------------------------------------------------------------------------------ */

struct choice { /* files in the order of ranks, a bit each; then their numbers */
	uint8_t *is;
	size_t *v, n;
	uint64_t bytes;
};

static void choice_fini(struct choice *c)
{
	vv_mem_free(c->is);
	vv_mem_free(c->v);
}

static int choose_one(const struct vv_unpack *u, const char *name, struct choice *c)
{
	size_t i = find(u, name), first = i;

	for (; i < u->n_files; i++) {
		const char *other = vv_unpack_at(u, u->by_name[i]).file->name;

		if (strcmp(other, name) != 0 && !is_below(other, name))
			break;
		c->is[u->by_name[i]] = 1;
	}
	return i == first ? not_there(u, name) : 0;
}

/* A share has the files whose middle, by bytes, lies in it; each file counts for a little more than it holds, so that empty ones are shared, too. */
static void choose_share(const struct vv_unpack *u, const struct vv_unpack_options *opt, struct choice *c)
{
	enum { LEAST = 4096 };
	uint64_t total = 0, before = 0;
	uint32_t shares = opt->shares ? opt->shares : 1;

	for (size_t i = 0; i < u->n_files; i++)
		total += c->is[i] ? vv_unpack_at(u, i).region->shape.len + LEAST : 0;
	for (size_t i = 0; i < u->n_files; i++) {
		uint64_t len = vv_unpack_at(u, i).region->shape.len, middle = before + (len + LEAST) / 2;

		if (!c->is[i])
			continue;
		before += len + LEAST;
		if ((uint32_t)((double)middle / (double)total * shares) != opt->share)
			continue;
		c->v[c->n++] = i;
		c->bytes += len;
	}
}

static int choose(const struct vv_unpack *u, const struct vv_unpack_options *opt, struct choice *c)
{
	int rc;

	*c = (struct choice){ .is = vv_mem_new(u->n_files, 1), .v = vv_mem_new(u->n_files, sizeof(*c->v)) };
	rc = c->is && c->v ? 0 : VV_ENOMEM;
	if (rc == 0 && opt->n_only == 0)
		memset(c->is, 1, u->n_files);
	for (size_t i = 0; rc == 0 && i < opt->n_only; i++)
		rc = choose_one(u, opt->only[i], c);
	if (rc == 0)
		choose_share(u, opt, c);
	return rc;
}

/* ---- before anything is written ----------------------------------------------------------------------------------- */

static int look(const struct vv_unpack *u, const struct vv_unpack_options *opt, const struct choice *c)
{
	struct vv_target t;
	char list[300] = "";
	size_t used = 0, n = 0;
	int rc = vv_target_open(&t, opt->folder, false);

	for (size_t i = 0; rc == 0 && i < c->n; i++) {
		const char *name = vv_unpack_at(u, c->v[i]).file->name;
		bool there;

		rc = vv_target_look(&t, name, &there);
		if (rc || !there || opt->force)
			continue;
		if (used < sizeof(list) && n < 5)
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s'%s'", n ? ", " : "", name);
		n++;
	}
	vv_target_close(&t);
	if (rc == 0 && n)
		rc = vv_err_set(VV_EINVAL, "%zu of the files %s below '%s' already: %s%s; nothing was unpacked (--force replaces them)", n,
				n == 1 ? "is" : "are", opt->folder, list, n > 5 ? " ..." : "");
	return rc;
}

int vv_unpack_check(const struct vv_unpack *u, const struct vv_unpack_options *opt)
{
	struct vv_unpack_options all = *opt;
	struct choice c;
	int rc;

	all.share = all.shares = 0;
	rc = choose(u, &all, &c);
	if (rc == 0)
		rc = look(u, &all, &c);
	choice_fini(&c);
	return rc;
}

/* ---- unpacking ---------------------------------------------------------------------------------------------------- */

struct output {
	struct vv_unpack_file from;
	struct vv_target_file to;
	bool open;  /* under way */
	bool whole; /* laid down */
};

struct unpacking {
	const struct vv_unpack *u;
	const struct vv_unpack_options *opt;
	struct vv_pool *pool;
	struct vv_target target;
	struct choice choice;
	size_t first; /* of the choice: where the group begins */
	struct output out[VV_ABREAST_MOST];
	size_t n;     /* in the group */
	bool full;    /* there is no space: no more files are begun */
	atomic_uint_least64_t done;
	pthread_mutex_t lock; /* of what follows */
	struct vv_err_state error; /* the first one */
	struct vv_unpack_report report;
};

static bool is_stopped(const struct unpacking *k)
{
	return k->opt->stop && atomic_load(k->opt->stop);
}

/* The file will not come: remembers its name, and why, if it is the first one. The thread's message says so. */
static void miss(struct unpacking *k, const char *name, int rc)
{
	struct vv_unpack_report *r = &k->report;
	struct vv_err_state error;
	char *copy;

	vv_err_save(rc, &error);
	copy = vv_mem_strdup(name);
	pthread_mutex_lock(&k->lock);
	if (!k->error.code)
		k->error = error;
	k->full |= rc == VV_ENOSPC;
	if (copy) {
		char **v = vv_mem_grow(r->missing, r->n_missing + 1, sizeof(*v));

		if (v) {
			r->missing = v;
			v[r->n_missing++] = copy;
		} else {
			vv_mem_free(copy);
		}
	}
	pthread_mutex_unlock(&k->lock);
}

static void give_up(struct unpacking *k, struct output *o, int rc)
{
	vv_target_abort(&o->to);
	o->open = false;
	miss(k, o->from.file->name, rc);
}

static int there(void *arg, size_t i, uint64_t at, const uint8_t *p, size_t n)
{
	struct unpacking *k = arg;
	struct output *o = &k->out[i];

	if (is_stopped(k))
		return vv_err_set(VV_EIO, "interrupted");
	if (vv_sparse_write(o->to.fd, 0, &o->from.region->runs, at, p, n) < 0) {
		bool too_large = errno == EFBIG; /* which is this file's own affair, and no want of space */
		int rc = vv_err_sys(errno, "cannot write '%s' below '%s'", o->from.file->name, k->target.path);

		return too_large ? VV_EIO : rc;
	}
	(void)sync_file_range(o->to.fd, (off_t)at, (off_t)n, SYNC_FILE_RANGE_WRITE); /* a hint: the disk has work while we have, too */
	vv_progress_tell(&k->opt->progress, atomic_fetch_add(&k->done, n) + n, k->choice.bytes);
	return 0;
}

/* Where there is no space it is the last files that go, so that those before them become whole. */
static size_t lost(void *arg, size_t i, int rc)
{
	struct unpacking *k = arg;
	size_t victim = i;

	for (size_t j = k->n; rc == VV_ENOSPC && j-- > i;)
		if (k->out[j].open) {
			victim = j;
			break;
		}
	give_up(k, &k->out[victim], rc);
	return victim;
}

static void finish_one(void *arg, size_t i)
{
	struct unpacking *k = arg;
	struct output *o = &k->out[i];
	const struct vv_manifest_file *f = o->from.file;
	struct timespec mtime = { .tv_sec = (time_t)f->mtime_s, .tv_nsec = (long)f->mtime_ns };
	int rc;

	if (!o->open)
		return;
	if (is_stopped(k)) {
		vv_err_set(VV_EIO, "interrupted");
		give_up(k, o, VV_EIO);
		return;
	}
	rc = vv_target_commit(&o->to, o->from.region->shape.len, f->mode, mtime, k->opt->force);
	o->open = false;
	o->whole = rc == 0;
	if (rc)
		miss(k, f->name, rc);
}

/* Files of one rank, as many as go abreast. */
static void begin_group(struct unpacking *k)
{
	k->n = 0;
	for (; k->first < k->choice.n && k->n < VV_ABREAST_MOST; k->first++) {
		struct output *o = &k->out[k->n];
		int rc;

		*o = (struct output){ .from = vv_unpack_at(k->u, k->choice.v[k->first]) };
		if (k->n && o->from.rank != k->out[0].from.rank)
			return;
		if (k->full || is_stopped(k))
			rc = vv_err_set(k->full ? VV_ENOSPC : VV_EIO, k->full ? "no space is left" : "interrupted");
		else
			rc = vv_target_create(&k->target, o->from.file->name, &o->to);
		o->open = rc == 0;
		if (rc)
			miss(k, o->from.file->name, rc);
		else
			k->n++;
	}
}

static int run_group(struct unpacking *k)
{
	const struct vv_abreast to = { k, there, lost };
	const struct vv_runs *runs[VV_ABREAST_MOST];
	uint64_t len[VV_ABREAST_MOST];
	int rc;

	for (size_t i = 0; i < k->n; i++) {
		runs[i] = &k->out[i].from.region->runs;
		len[i] = k->out[i].from.region->shape.len;
	}
	rc = vv_abreast_read(k->u->lineage, k->pool, runs, len, k->n, &to);
	for (size_t i = 0; rc && i < k->n; i++)
		if (k->out[i].open)
			give_up(k, &k->out[i], rc);
	vv_pool_each(k->pool, k->n, finish_one, k);
	for (size_t i = 0; i < k->n; i++)
		if (k->out[i].whole) {
			k->report.files++;
			k->report.bytes += len[i];
		}
	return rc;
}

static int run(struct unpacking *k)
{
	int rc = choose(k->u, k->opt, &k->choice);

	if (rc == 0)
		rc = look(k->u, k->opt, &k->choice);
	if (rc == 0 && k->choice.n)
		rc = vv_target_open(&k->target, k->opt->folder, true);
	while (rc == 0 && k->first < k->choice.n) {
		begin_group(k);
		rc = run_group(k);
	}
	for (; rc && k->choice.n && k->first && k->first < k->choice.n; k->first++)
		miss(k, vv_unpack_at(k->u, k->choice.v[k->first]).file->name, rc);
	if (rc == 0 && k->choice.n)
		rc = vv_target_sync(&k->target);
	return k->error.code ? vv_err_restore(&k->error) : rc;
}

int vv_unpack_run(const struct vv_unpack *u, struct vv_pool *pool, const struct vv_unpack_options *opt, struct vv_unpack_report *out)
{
	struct unpacking *k = vv_mem_new(1, sizeof(*k));
	int rc;

	*out = (struct vv_unpack_report){ 0 };
	if (!k)
		return VV_ENOMEM;
	k->u = u;
	k->opt = opt;
	k->pool = pool;
	k->target.fd = -1;
	pthread_mutex_init(&k->lock, NULL);
	rc = run(k);
	*out = k->report;
	vv_target_close(&k->target);
	choice_fini(&k->choice);
	pthread_mutex_destroy(&k->lock);
	vv_mem_free(k);
	return rc;
}

void vv_unpack_report_fini(struct vv_unpack_report *r)
{
	for (size_t i = 0; i < r->n_missing; i++)
		vv_mem_free(r->missing[i]);
	vv_mem_free(r->missing);
	*r = (struct vv_unpack_report){ 0 };
}
