#include "engine/files/unpack.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "core/format/file_links.h"
#include "engine/files/tree_entries.h"
#include "engine/files/output_files.h"
#include "engine/read/restore.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- files of an epoch ----------------------------------------------------------------------- */

void vv_unpack_close(struct vv_unpack *u)
{
	for (size_t i = 0; i < u->n_ranks; i++) {
		vv_run_table_fini(&u->rank[i].table);
		vv_manifest_fini(&u->rank[i].manifest);
	}
	vv_mem_free(u->rank);
	vv_mem_free(u->by_name);
	*u = (struct vv_unpack){ 0 };
}

struct here {
	const struct vv_lineage *lin;
	struct vv_pool *pool;
};

static int read_here(void *arg, int rc, const struct vv_want *want, size_t n)
{
	const struct here *h = arg;

	return rc ? rc : vv_restore_read(h->lin, h->pool, want, n);
}

/* r: NULL if rc is an error. */
static int read_manifest(const struct vv_unpack_reader *from, int rc, const struct vv_run_table_region *r, struct vv_manifest *out)
{
	struct vv_want want = { 0 };

	if (rc == 0 && r->shape.len > VV_MANIFEST_BYTES)
		rc = vv_err_set(VV_EDAMAGED, "list of files: %" PRIu64 " bytes are too many", r->shape.len);
	if (rc == 0) {
		want = (struct vv_want){ &r->runs, 0, r->shape.len, vv_mem_new((size_t)r->shape.len, 1), NULL };
		rc = want.to ? 0 : VV_ENOMEM;
	}
	rc = from->read(from->arg, rc, &want, rc == 0);
	if (rc == 0)
		rc = vv_manifest_get(out, want.to, (size_t)want.len);
	vv_mem_free(want.to);
	return rc;
}

static int not_files(const struct vv_lineage *lin, uint64_t epoch)
{
	return vv_err_set(VV_EINVAL, "epoch %" PRIu64 " of lineage '%s' was not packed from files ('varve show' lists its regions, 'varve extract' takes "
			  "one out)", epoch, lin->name);
}

static int take_manifest(const struct vv_lineage *lin, const struct vv_unpack_reader *from, const struct vv_run_table *t, struct vv_manifest *out)
{
	size_t list = vv_run_table_find(t, VV_MANIFEST_REGION);
	int rc = list < t->n ? 0 : not_files(lin, t->epoch);

	rc = read_manifest(from, rc, rc ? NULL : &t->region[list], out);
	for (size_t i = 0; rc == 0 && i < out->n_files; i++)
		if (out->file[i].region >= t->n || out->file[i].region == list)
			rc = vv_err_set(VV_EDAMAGED, "list of files: '%s' is said to be region %" PRIu32 ", which is none", out->file[i].name,
					out->file[i].region);
	return rc == VV_EDAMAGED ? vv_err_context(rc, "epoch %" PRIu64 " of lineage '%s', rank %" PRIu32, t->epoch, lin->name, t->rank) : rc;
}

int vv_unpack_manifest(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_run_table *t, struct vv_manifest *out, bool *has)
{
	struct here here = { lin, pool };

	*has = vv_run_table_find(t, VV_MANIFEST_REGION) < t->n;
	return *has ? take_manifest(lin, &(struct vv_unpack_reader){ &here, read_here }, t, out) : 0;
}

static int by_name(const void *a, const void *b, void *arg)
{
	const struct vv_unpack *u = arg;

	return vv_manifest_compare(vv_unpack_at(u, *(const size_t *)a).file->name, vv_unpack_at(u, *(const size_t *)b).file->name);
}

/* Checks all paths, including links and folders. */
static int check_paths(const struct vv_unpack *u)
{
	struct vv_manifest_path *p;
	size_t n = 0, entries = 0;
	int rc;

	for (size_t r = 0; r < u->n_ranks; r++)
		entries += u->rank[r].manifest.n_entries;
	if (entries == 0)
		return 0;
	p = vv_mem_new(u->n_files + entries, sizeof(*p));
	if (!p)
		return VV_ENOMEM;
	for (size_t i = 0; i < u->n_files; i++)
		p[n++] = (struct vv_manifest_path){ vv_unpack_at(u, i).file->name, true };
	for (size_t r = 0; r < u->n_ranks; r++)
		for (size_t i = 0; i < u->rank[r].manifest.n_entries; i++) {
			const struct vv_manifest_entry *e = &u->rank[r].manifest.entry[i];

			p[n++] = (struct vv_manifest_path){ e->name, e->type == VV_MANIFEST_LINK };
		}
	rc = vv_manifest_check_paths(p, n, VV_EDAMAGED);
	vv_mem_free(p);
	return rc == VV_EDAMAGED ? vv_err_context(rc, "epoch %" PRIu64 " of lineage '%s'", u->epoch, u->lineage->name) : rc;
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
		if (vv_manifest_is_below(b.file->name, a.file->name))
			return vv_err_set(VV_EDAMAGED, "epoch %" PRIu64 " has '%s' as a file and, for '%s', as a folder", u->epoch, a.file->name,
					  b.file->name);
	}
	return check_paths(u);
}

/* *has: the rank has a manifest. */
static int open_rank(const struct vv_lineage *lin, const struct vv_commit *c, uint32_t rank, struct vv_pool *pool, struct vv_unpack_rank *r, bool *has)
{
	int rc = vv_run_table_load(lin, c->epoch, rank, &(struct vv_run_table_how){ .pool = pool, .commit = c }, &r->table);

	return rc ? rc : vv_unpack_manifest(lin, pool, &r->table, &r->manifest, has);
}

bool vv_unpack_is_of_one_rank(int rc)
{
	return rc == VV_EDAMAGED || rc == VV_ENOENT || rc == VV_EIO || rc == VV_EDENIED;
}

static void mark_lost(struct vv_unpack *u, struct vv_unpack_rank *r, int rc)
{
	if (u->n_lost++ == 0)
		vv_err_save(rc, &u->lost);
	vv_run_table_fini(&r->table);
	vv_manifest_fini(&r->manifest);
	*r = (struct vv_unpack_rank){ .lost = true };
}

static int open_ranks(struct vv_unpack *u, const struct vv_commit *c, struct vv_pool *pool, bool rest)
{
	bool has = false, is_first = true;
	int rc = 0;

	u->rank = vv_mem_new(c->n_ranks, sizeof(*u->rank));
	if (!u->rank)
		return VV_ENOMEM;
	for (; rc == 0 && u->n_ranks < c->n_ranks; u->n_ranks++) {
		struct vv_unpack_rank *r = &u->rank[u->n_ranks];

		rc = open_rank(u->lineage, c, (uint32_t)u->n_ranks, pool, r, &has);
		if (rc == 0 && !has && is_first)
			rc = not_files(u->lineage, u->epoch);
		is_first &= rc != 0;
		if (rest && vv_unpack_is_of_one_rank(rc)) {
			mark_lost(u, r, rc);
			rc = 0;
		}
		r->first = u->n_files;
		u->n_files += r->manifest.n_files;
	}
	return rc == 0 && u->n_lost == u->n_ranks ? vv_err_restore(&u->lost) : rc;
}

static int open_epoch(const struct vv_lineage *lin, uint64_t epoch, struct vv_pool *pool, bool rest, struct vv_unpack *out)
{
	struct vv_unpack u = { .lineage = lin, .epoch = epoch };
	struct vv_commit c = { 0 };
	int rc = vv_catalog_commit(lin, epoch, &c);

	if (rc == 0)
		rc = open_ranks(&u, &c, pool, rest);
	vv_commit_fini(&c);
	if (rc == 0)
		rc = sort_names(&u);
	if (rc)
		vv_unpack_close(&u);
	else
		*out = u;
	return rc;
}

int vv_unpack_open(const struct vv_lineage *lin, uint64_t epoch, struct vv_pool *pool, struct vv_unpack *out)
{
	return open_epoch(lin, epoch, pool, false, out);
}

int vv_unpack_open_rest(const struct vv_lineage *lin, uint64_t epoch, struct vv_pool *pool, struct vv_unpack *out)
{
	return open_epoch(lin, epoch, pool, true, out);
}

int vv_unpack_take(const struct vv_lineage *lin, struct vv_run_table *t, const struct vv_unpack_reader *from, struct vv_unpack *out)
{
	struct vv_unpack u = { .lineage = lin, .epoch = t->epoch };
	struct vv_manifest m = { 0 };
	int rc = take_manifest(lin, from, t, &m);

	u.rank = vv_mem_new(1, sizeof(*u.rank));
	if (!u.rank) {
		vv_manifest_fini(&m);
		vv_run_table_fini(t);
		return rc ? rc : VV_ENOMEM;
	}
	u.rank[u.n_ranks++] = (struct vv_unpack_rank){ .table = *t, .manifest = m };
	*t = (struct vv_run_table){ 0 };
	u.n_files = m.n_files;
	if (rc == 0)
		rc = sort_names(&u);
	if (rc)
		vv_unpack_close(&u);
	else
		*out = u;
	return rc;
}

int vv_unpack_open_rank(const struct vv_lineage *lin, uint64_t epoch, uint32_t rank, struct vv_pool *pool, struct vv_unpack *out)
{
	struct here here = { lin, pool };
	struct vv_run_table t = { 0 };
	int rc = vv_run_table_load(lin, epoch, rank, &(struct vv_run_table_how){ .pool = pool }, &t);

	return rc ? rc : vv_unpack_take(lin, &t, &(struct vv_unpack_reader){ &here, read_here }, out);
}

/* Searches the last rank that has files and whose first file is not behind i. */
struct vv_unpack_file vv_unpack_at(const struct vv_unpack *u, size_t i)
{
	size_t at;
	const struct vv_unpack_rank *r;

	VV_SEARCH(at, 1, u->n_ranks, u->rank[at].first <= i);
	r = &u->rank[at - 1];
	return (struct vv_unpack_file){ &r->manifest.file[i - r->first], &r->table.region[r->manifest.file[i - r->first].region],
					r->table.rank };
}

static size_t find(const struct vv_unpack *u, const char *name)
{
	size_t i;

	VV_SEARCH(i, 0, u->n_files, vv_manifest_compare(vv_unpack_at(u, u->by_name[i]).file->name, name) < 0);
	return i;
}

/* The message lists files with the same last part of the name, else the first files. */
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
	if (u->n_lost)
		return vv_err_set(u->lost.code, "no file '%s' is among the %zu that epoch %" PRIu64 " of lineage '%s' is known to have; those of %zu of its ranks "
				  "cannot be told: %s", name, u->n_files, u->epoch, u->lineage->name, u->n_lost, u->lost.message);
	return vv_err_set(VV_ENOENT, "epoch %" PRIu64 " of lineage '%s' has no file '%s'; it has %zu, such as %s", u->epoch, u->lineage->name, name,
			  u->n_files, n ? list : "none");
}

bool vv_unpack_has(const struct vv_unpack *u, const char *name, struct vv_unpack_file *out)
{
	size_t i = find(u, name);

	if (i == u->n_files || strcmp(vv_unpack_at(u, u->by_name[i]).file->name, name) != 0)
		return false;
	*out = vv_unpack_at(u, u->by_name[i]);
	return true;
}

int vv_unpack_find(const struct vv_unpack *u, const char *name, struct vv_unpack_file *out)
{
	return vv_unpack_has(u, name, out) ? 0 : not_there(u, name);
}

/* ---- choice of files ------------------------------------------------------------------------- */

struct unpack_choice { /* files in the order of ranks, a bit each; then their numbers */
	uint8_t *is;
	size_t *v, n;
	/* per file: 1 + the number of a chosen file that is the same, a hard link; 0: none. NULL:
	 * none at all */
	size_t *first;
	uint64_t bytes;
	bool open; /* the request may match more files: not all were named one by one */
};

static void choice_fini(struct unpack_choice *c)
{
	vv_mem_free(c->is);
	vv_mem_free(c->v);
	vv_mem_free(c->first);
}

/* A manifest may not claim that two files are one if its layer stores them separately. Two ranks
 * may have packed one file at different positions. */
static bool can_be_same_file(struct vv_unpack_file a, struct vv_unpack_file b)
{
	const struct vv_runs *x = &a.region->runs, *y = &b.region->runs;

	if (a.region->shape.len != b.region->shape.len || a.rank != b.rank)
		return a.region->shape.len == b.region->shape.len;
	return x->n == y->n && (x->n == 0 || memcmp(x->v, y->v, x->n * sizeof(*x->v)) == 0);
}

static int find_links(const struct vv_unpack *u, struct unpack_choice *c)
{
	struct vv_link *link = NULL;
	size_t n = 0, cap = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < u->n_files; i++) {
		const struct vv_manifest_file *f = vv_unpack_at(u, i).file;

		if (!c->is[i] || !f->linked)
			continue;
		rc = vv_mem_room(&link, n, &cap, sizeof(*link));
		if (rc == 0)
			link[n++] = (struct vv_link){ .dev = f->dev, .ino = f->ino, .file = i };
	}
	c->first = rc == 0 && n ? vv_mem_new(u->n_files, sizeof(*c->first)) : NULL;
	if (rc == 0 && n && !c->first)
		rc = VV_ENOMEM;
	vv_file_links_group(link, n);
	for (size_t i = 0; rc == 0 && i < n; i++)
		if (link[i].first != link[i].file && can_be_same_file(vv_unpack_at(u, link[i].first), vv_unpack_at(u, link[i].file)))
			c->first[link[i].file] = link[i].first + 1;
	vv_mem_free(link);
	return rc;
}

static bool is_repeated(const struct unpack_choice *c, size_t file)
{
	return c->first && c->first[file];
}

static bool has_entry(const struct vv_unpack *u, const char *name)
{
	bool has = false;

	for (size_t r = 0; r < u->n_ranks; r++)
		for (size_t i = 0; !has && i < u->rank[r].manifest.n_entries; i++) {
			const char *other = u->rank[r].manifest.entry[i].name;

			has = strcmp(other, name) == 0 || vv_manifest_is_below(other, name);
		}
	return has;
}

static int choose_one(const struct vv_unpack *u, const char *name, struct unpack_choice *c)
{
	size_t i = find(u, name), first = i;

	for (; i < u->n_files; i++) {
		const char *other = vv_unpack_at(u, u->by_name[i]).file->name;

		if (strcmp(other, name) != 0 && !vv_manifest_is_below(other, name))
			break;
		c->open |= strcmp(other, name) != 0;
		c->is[u->by_name[i]] = 1;
	}
	return i == first && !has_entry(u, name) ? not_there(u, name) : 0;
}

/* A share has the files whose middle, by bytes, lies in it, and hard links to them. Each file
 * counts slightly more than its bytes, so that empty files are shared too. */
static void choose_share(const struct vv_unpack *u, const struct vv_unpack_options *opt, struct unpack_choice *c)
{
	enum { LEAST = 4096 };
	uint64_t total = 0, before = 0;
	uint32_t shares = opt->shares ? opt->shares : 1;

	for (size_t i = 0; i < u->n_files; i++)
		total += c->is[i] && !is_repeated(c, i) ? vv_unpack_at(u, i).region->shape.len + LEAST : 0;
	for (size_t i = 0; i < u->n_files; i++) {
		uint64_t len = vv_unpack_at(u, i).region->shape.len, middle = before + (len + LEAST) / 2;

		if (!c->is[i] || is_repeated(c, i))
			continue;
		before += len + LEAST;
		c->is[i] = (uint32_t)((double)middle / (double)total * shares) == opt->share;
		c->bytes += c->is[i] ? len : 0;
	}
	for (size_t i = 0; i < u->n_files; i++) /* the first name stays a file */
		if (c->is[i] && (!is_repeated(c, i) || c->is[c->first[i] - 1]))
			c->v[c->n++] = i;
}

static int choose(const struct vv_unpack *u, const struct vv_unpack_options *opt, struct unpack_choice *c)
{
	int rc;

	*c = (struct unpack_choice){ .is = vv_mem_new(u->n_files, 1), .v = vv_mem_new(u->n_files, sizeof(*c->v)), .open = opt->n_only == 0 };
	rc = c->is && c->v ? 0 : VV_ENOMEM;
	if (rc == 0 && opt->n_only == 0)
		memset(c->is, 1, u->n_files);
	for (size_t i = 0; rc == 0 && i < opt->n_only; i++)
		rc = choose_one(u, opt->only[i], c);
	if (rc == 0 && !opt->test) /* a test reads the file under each name */
		rc = find_links(u, c);
	if (rc == 0)
		choose_share(u, opt, c);
	return rc;
}

/* ---- checks before writing ------------------------------------------------------------------- */

struct there { /* existing files at the destination */
	char list[300];
	size_t used, n;
};

static void add_there(struct there *x, const char *name)
{
	if (x->used < sizeof(x->list) && x->n < 5)
		x->used += (size_t)snprintf(x->list + x->used, sizeof(x->list) - x->used, "%s'%s'", x->n ? ", " : "", name);
	x->n++;
}

static int look(const struct vv_unpack *u, const struct vv_unpack_options *opt, const struct unpack_choice *c)
{
	struct there x = { 0 };
	struct vv_tree_entries e;
	struct vv_output_dir t;
	bool there;
	int rc = vv_tree_entries_choose(u, opt, &e);

	if (rc)
		return rc;
	rc = vv_output_dir_open(&t, opt->folder, false);
	for (size_t i = 0; rc == 0 && i < c->n; i++) {
		const char *name = vv_unpack_at(u, c->v[i]).file->name;

		rc = vv_output_dir_check_file(&t, name, &there);
		if (rc == 0 && there && !opt->force)
			add_there(&x, name);
	}
	for (size_t i = 0; rc == 0 && i < e.n && opt->share == 0; i++) {
		bool link = e.v[i]->type == VV_MANIFEST_LINK;

		rc = link ? vv_output_dir_check_file(&t, e.v[i]->name, &there) : vv_output_dir_check_folder(&t, e.v[i]->name);
		if (rc == 0 && link && there && !opt->force)
			add_there(&x, e.v[i]->name);
	}
	vv_output_dir_close(&t);
	vv_tree_entries_fini(&e);
	if (rc == 0 && x.n)
		rc = vv_err_set(VV_EINVAL, "%zu of the files %s below '%s' already: %s%s; nothing was unpacked (--force replaces them)", x.n,
				x.n == 1 ? "is" : "are", opt->folder, x.list, x.n > 5 ? " ..." : "");
	return rc;
}

int vv_unpack_check(const struct vv_unpack *u, const struct vv_unpack_options *opt)
{
	struct vv_unpack_options all = *opt;
	struct unpack_choice c;
	int rc;

	all.share = all.shares = 0;
	rc = choose(u, &all, &c);
	if (rc == 0 && !opt->test)
		rc = look(u, &all, &c);
	choice_fini(&c);
	return rc;
}

/* ---- unpacking ------------------------------------------------------------------------------- */

/* Writes files in the order of packing, because neighbours share the most blocks. If `repeated` is
 * true, it writes only the files that could not become hard links; else the others. */
static int write_all(const struct vv_unpack *u, const struct unpack_choice *c, bool repeated, struct vv_output_files *k)
{
	size_t i = 0;
	int rc = 0;

	while (rc == 0 && i < c->n) {
		while (i < c->n && (is_repeated(c, c->v[i]) != repeated || !c->is[c->v[i]] || vv_output_files_begin(k, vv_unpack_at(u, c->v[i]))))
			i++;
		rc = vv_output_files_run(k);
	}
	for (; i < c->n; i++)
		if (is_repeated(c, c->v[i]) == repeated)
			vv_output_files_miss(k, vv_unpack_at(u, c->v[i]).file->name, rc);
	return rc;
}

static bool is_missing(const struct vv_unpack_report *r, const char *name)
{
	bool missing = false;

	for (size_t i = 0; !missing && i < r->n_missing; i++)
		missing = strcmp(r->missing[i], name) == 0;
	return missing;
}

/* If a hard link is impossible, the file is written separately; `is` marks it. */
static int write_links(const struct vv_unpack *u, struct unpack_choice *c, struct vv_output_files *k)
{
	size_t missing = k->report.n_missing;

	for (size_t i = 0; i < c->n; i++) {
		size_t file = c->v[i];
		const char *name = vv_unpack_at(u, file).file->name, *first;
		int rc;

		if (!is_repeated(c, file))
			continue;
		first = vv_unpack_at(u, c->first[file] - 1).file->name;
		if (missing && is_missing(&k->report, first))
			rc = vv_err_set(VV_EIO, "'%s' is another name of '%s', which is missing", name, first);
		else
			rc = vv_output_dir_link(k->target, first, name, k->opt->force);
		c->is[file] = rc == VV_ENOTSUP;
		k->report.files += rc == 0;
		k->report.copies += rc == VV_ENOTSUP;
		if (rc && rc != VV_ENOTSUP)
			vv_output_files_miss(k, name, rc);
	}
	return k->report.copies ? write_all(u, c, true, k) : 0;
}

static int write_files(const struct vv_unpack *u, struct unpack_choice *c, struct vv_output_files *k)
{
	int rc = vv_output_files_init(k, c->n);

	if (rc == 0)
		rc = write_all(u, c, false, k);
	if (c->first && rc == 0)
		rc = write_links(u, c, k);
	else if (c->first)
		for (size_t i = 0; i < c->n; i++)
			if (is_repeated(c, c->v[i]))
				vv_output_files_miss(k, vv_unpack_at(u, c->v[i]).file->name, rc);
	if (rc == 0)
		rc = vv_output_dir_sync(k->target);
	return rc;
}

int vv_unpack_run(const struct vv_unpack *u, struct vv_pool *pool, const struct vv_unpack_options *opt, struct vv_unpack_report *out)
{
	struct vv_output_dir target = { .fd = -1 };
	struct vv_output_files k = { .lineage = u->lineage, .pool = pool, .target = &target, .opt = opt };
	struct unpack_choice c = { 0 };
	int rc = choose(u, opt, &c);

	if (rc == 0 && !opt->test)
		rc = look(u, opt, &c);
	if (rc == 0 && c.n && !opt->test)
		rc = vv_output_dir_open(&target, opt->folder, true);
	k.bytes = c.bytes;
	if (rc == 0 && c.n) {
		rc = write_files(u, &c, &k);
		vv_output_files_fini(&k);
	}
	*out = k.report;
	out->blocks = atomic_load(&k.blocks);
	out->n_lost = c.open && opt->share == 0 ? u->n_lost : 0;
	vv_output_dir_close(&target);
	choice_fini(&c);
	if (k.error.code)
		return vv_err_restore(&k.error);
	return rc == 0 && out->n_lost ? vv_err_restore(&u->lost) : rc;
}

void vv_unpack_miss(struct vv_unpack_report *r, const char *name)
{
	char *copy = vv_mem_strdup(name), **v = copy ? vv_mem_grow(r->missing, r->n_missing + 1, sizeof(*v)) : NULL;

	if (!v) {
		vv_mem_free(copy);
		return;
	}
	r->missing = v;
	v[r->n_missing++] = copy;
}

void vv_unpack_report_fini(struct vv_unpack_report *r)
{
	for (size_t i = 0; i < r->n_missing; i++)
		vv_mem_free(r->missing[i]);
	vv_mem_free(r->missing);
	*r = (struct vv_unpack_report){ 0 };
}
