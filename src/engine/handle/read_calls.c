/* The calls of a reader that look into an epoch: its regions, and parts of their content. */
#include "engine/handle/reader_handle.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/lineage/provenance.h"
#include "engine/ranks/global_table.h"
#include "engine/read/device_restore.h"
#include "engine/read/restore.h"
#include "engine/fields.h"
#include "engine/threads.h"
#include "track/write_protect.h"
#include <inttypes.h>
#include <string.h>

/* ---- an epoch, beside its writer ------------------------------------------------------------- */

/* Loads the table unless it is the one read last. The record is read each time: the writer may have
 * dropped the epoch. */
static int load_table(struct varve_reader *r, uint64_t epoch, uint32_t rank, const struct vv_commit *c)
{
	struct vv_run_table_how how = { .pool = r->ctx.pool, .commit = c };
	const struct vv_digest *head = &c->rank[rank == VARVE_GLOBAL ? 0 : rank].head;
	int rc;

	if (r->table.epoch == epoch && r->table.rank == rank && memcmp(&r->table_head, head, sizeof(r->table_head)) == 0)
		return 0;
	vv_run_table_fini(&r->table);
	vv_provenance_forget(&r->ctx.lineage);
	if (rank == VARVE_GLOBAL)
		rc = vv_global_table_load(&r->ctx.lineage, r->ctx.pool, epoch, NULL, &r->table);
	else
		rc = vv_run_table_load(&r->ctx.lineage, epoch, rank, &how, &r->table);
	if (rc == 0)
		r->table_head = *head;
	return rc;
}

/* With stores of their own, hosts have only their own ranks' layers. */
static int explain_elsewhere(const struct varve_reader *r, const struct vv_commit *c, uint32_t rank, int rc)
{
	struct vv_err_state error;
	struct vv_listing l = { 0 };
	uint8_t *where = NULL;
	bool elsewhere;

	if (rc != VV_EDAMAGED || rank == VARVE_GLOBAL || !c->rank[rank].storage_node)
		return rc;
	vv_err_save(rc, &error);
	elsewhere = vv_catalog_list(&r->ctx.lineage, c->epoch, &l) == 0 && vv_catalog_locate_layers(&l, c, &where) == 0 &&
		    where[rank] == VV_CATALOG_ELSEWHERE;
	vv_mem_free(where);
	vv_catalog_listing_fini(&l);
	return !elsewhere ? vv_err_restore(&error) :
	       vv_err_set(VV_ENOENT, "rank %" PRIu32 " of epoch %" PRIu64 " of lineage '%s' is in the store of another host, not in '%s'", rank, c->epoch,
			  r->ctx.lineage.name, r->ctx.store->url);
}

typedef int (*epoch_work)(struct varve_reader *r, void *arg);

/* Works on the table of an epoch. *found: there was such an epoch. */
static int work_on(struct varve_reader *r, uint64_t epoch, uint32_t rank, epoch_work work, void *arg, bool *found)
{
	struct vv_commit c = { 0 };
	int rc = vv_catalog_commit(&r->ctx.lineage, epoch, &c);

	*found = rc == 0;
	if (rc == 0 && rank >= c.n_ranks && rank != VARVE_GLOBAL)
		rc = vv_err_set(VV_ENOENT, "epoch %" PRIu64 " of lineage '%s' has %u rank(s), there is no rank %u", epoch, r->ctx.lineage.name, c.n_ranks, rank);
	else if (rc == 0)
		rc = explain_elsewhere(r, &c, rank, load_table(r, epoch, rank, &c));
	if (rc == 0)
		rc = work(r, arg);
	vv_commit_fini(&c);
	return rc;
}

/* After a failure: has the writer dropped the epoch? Then its missing or smaller layers are no
 * damage. */
static bool was_dropped(const struct varve_reader *r, uint64_t epoch, int rc)
{
	return (rc == VV_EDAMAGED || rc == VV_ENOENT || rc == VV_EIO) && vv_catalog_is_dropped(&r->ctx.lineage, epoch);
}

static int work_on_latest(struct varve_reader *r, uint32_t rank, epoch_work work, void *arg)
{
	enum { TRIES = 50 };
	uint64_t epoch = 0;
	bool found;

	for (int i = 0; i < TRIES; i++) {
		int rc = vv_catalog_newest(&r->ctx.lineage, UINT64_MAX, &epoch);

		if (rc == 0 && !epoch)
			rc = vv_err_set(VV_ENOENT, "lineage '%s' of store '%s' has no epoch", r->ctx.lineage.name, r->ctx.store->url);
		else if (rc == 0)
			rc = work_on(r, epoch, rank, work, arg, &found);
		if (!epoch || !was_dropped(r, epoch, rc))
			return rc;
	}
	return vv_err_set(VV_ENOENT, "lineage '%s' of store '%s': its writer drops epochs faster than they can be read", r->ctx.lineage.name,
			  r->ctx.store->url);
}

static int work_on_epoch(struct varve_reader *r, uint64_t epoch, uint32_t rank, epoch_work work, void *arg)
{
	bool found = false;
	int rc = vv_threads_start(&r->ctx);

	if (rc == 0 && epoch == VARVE_LATEST)
		return work_on_latest(r, rank, work, arg);
	if (rc == 0)
		rc = work_on(r, epoch, rank, work, arg, &found);
	if (found && was_dropped(r, epoch, rc))
		rc = vv_err_set(VV_ENOENT, "epoch %" PRIu64 " of lineage '%s' was dropped by its writer while it was read", epoch, r->ctx.lineage.name);
	return rc;
}

/* ---- the regions of an epoch ----------------------------------------------------------------- */

static void describe_region(const struct vv_run_table_region *from, char **names, struct varve_field **fields, struct varve_stored_region *out)
{
	size_t n = strlen(from->name) + 1;

	*out = (struct varve_stored_region){ .name = *names, .bytes = from->shape.len, .type = (enum varve_type)from->shape.type,
					     .element = (uint32_t)vv_head_element_size(&from->shape), .ndim = from->shape.ndim };
	memcpy(out->shape, from->shape.dim, sizeof(out->shape));
	memcpy(*names, from->name, n);
	*names += n;
	if (from->shape.record) {
		vv_fields_list(from->shape.record, *fields);
		out->field = *fields;
		out->n_fields = from->shape.record->n;
		*fields += out->n_fields;
	}
}

static int list_regions(struct varve_reader *r, void *arg)
{
	struct varve_stored_region *regions = vv_mem_new(r->table.n, sizeof(*regions)), **list = vv_mem_new(r->table.n, sizeof(*list));
	struct varve_field *fields, *next_field;
	size_t bytes = 0, n_fields = 0;
	char *names, *next;

	(void)arg;
	for (size_t i = 0; i < r->table.n; i++) {
		bytes += strlen(r->table.region[i].name) + 1;
		n_fields += r->table.region[i].shape.record ? r->table.region[i].shape.record->n : 0;
	}
	names = next = vv_mem_new(bytes, 1);
	fields = next_field = vv_mem_new(n_fields, sizeof(*fields));
	if (!regions || !list || !names || !fields) {
		vv_mem_free(regions);
		vv_mem_free(list);
		vv_mem_free(names);
		vv_mem_free(fields);
		return VV_ENOMEM;
	}
	for (size_t i = 0; i < r->table.n; i++) {
		describe_region(&r->table.region[i], &next, &next_field, &regions[i]);
		list[i] = &regions[i];
	}
	vv_mem_free(r->regions);
	vv_mem_free(r->region);
	vv_mem_free(r->region_names);
	vv_mem_free(r->region_fields);
	r->region_fields = fields;
	r->regions = regions;
	r->region = list;
	r->region_names = names;
	return 0;
}

int varve_reader_regions(varve_reader *r, uint64_t epoch, uint32_t rank, const struct varve_stored_region *const **out, size_t *n)
{
	int rc = vv_reader_handle_enter(r, "varve_reader_regions", true);

	if (rc)
		return rc;
	rc = out && n ? work_on_epoch(r, epoch, rank, list_regions, NULL) : vv_err_set(VV_EINVAL, "varve_reader_regions: out and n are needed");
	if (rc == 0) {
		*out = (const struct varve_stored_region *const *)r->region;
		*n = r->table.n;
	}
	return vv_reader_handle_leave(r, rc);
}

/* ---- parts of a region ----------------------------------------------------------------------- */

struct region_part {
	const char *call, *name;
	bool bytes; /* one dimension of bytes, whatever the type */
	const uint64_t *start, *count; /* of each dimension; NULL: all */
	uint8_t *to;
};

/* The part as rows that are contiguous in the region, all of one length. */
struct region_rows {
	unsigned ndim;         /* of the dimensions that are stepped through */
	uint64_t count[VV_MAX_DIMS], stride[VV_MAX_DIMS]; /* stride in bytes */
	uint64_t at;           /* of the first row */
	uint64_t len, n;
};

/* Divides the part into rows. A dimension is part of the row if all faster ones are complete. */
static int cut_rows(const struct region_part *p, const struct vv_run_table *t, const struct vv_shape *s, struct region_rows *out)
{
	unsigned ndim = p->bytes || !s->ndim ? 1 : s->ndim;
	const uint64_t *dim = ndim == 1 && (p->bytes || !s->ndim) ? &s->len : s->dim;
	uint64_t stride = p->bytes ? 1 : vv_head_element_size(s);
	bool whole = true;

	*out = (struct region_rows){ .len = stride, .n = 1 };
	for (unsigned i = ndim; i-- > 0; stride *= dim[i]) {
		uint64_t start = p->start ? p->start[i] : 0, count = p->count ? p->count[i] : dim[i] - (start < dim[i] ? start : dim[i]);

		if (start > dim[i] || count > dim[i] - start)
			return vv_err_set(VV_EINVAL, "%s: region '%s' in epoch %" PRIu64 ": %" PRIu64 " %s from %" PRIu64 " on were requested%s; it has %" PRIu64,
					  p->call, p->name, t->epoch, count, p->bytes || !s->ndim ? "bytes" : "elements", start,
					  ndim > 1 ? " in one dimension" : "", dim[i]);
		out->at += start * stride;
		if (whole) {
			out->len *= count;
		} else {
			out->count[out->ndim] = count;
			out->stride[out->ndim++] = stride;
			out->n *= count;
		}
		whole &= count == dim[i];
	}
	out->n = out->len ? out->n : 0;
	return 0;
}

/* Reads the rows first..first+n-1. */
static int read_rows(struct varve_reader *r, const struct vv_runs *runs, const struct region_rows *rows, uint64_t first, size_t n, struct vv_want *want,
		     uint8_t *to)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t at = rows->at, index = first + i;

		for (unsigned d = 0; d < rows->ndim; d++) {
			at += index % rows->count[d] * rows->stride[d];
			index /= rows->count[d];
		}
		want[i] = (struct vv_want){ runs, at, rows->len, to + (first + i) * rows->len, NULL };
	}
	return vv_restore_read(&r->ctx.lineage, r->ctx.pool, want, n);
}

/* Fills host memory. The memory may be write-protected. A system call that writes to it would
 * fail. */
static int fill(struct varve_reader *r, const struct vv_want *all, const struct region_rows *rows)
{
	enum { ROWS = 1 << 16 };
	struct vv_make_writable writable = { 0 };
	struct vv_want *want = vv_mem_new(rows->n < ROWS ? rows->n : ROWS, sizeof(*want));
	int rc = want ? vv_restore_make_writable(all, 1, &writable) : VV_ENOMEM;

	if (rc == 0) {
		vv_write_protect_begin_syscall(all->to, (size_t)all->len);
		for (uint64_t i = 0; rc == 0 && i < rows->n; i += ROWS)
			rc = read_rows(r, all->runs, rows, i, rows->n - i < ROWS ? (size_t)(rows->n - i) : ROWS, want, all->to);
		vv_write_protect_end_syscall();
	}
	vv_mem_free(want);
	return vv_restore_protect_again(&writable, rc);
}

static int read_part(struct varve_reader *r, void *arg)
{
	const struct region_part *p = arg;
	const struct vv_run_table_region *from = NULL;
	struct vv_device_restore host_copies = { 0 };
	struct region_rows rows;
	struct vv_want all;
	int rc = vv_run_table_region(&r->ctx.lineage, &r->table, p->name, &from);

	if (rc == 0)
		rc = cut_rows(p, &r->table, &from->shape, &rows);
	if (rc || !rows.n)
		return rc;
	if (!p->to)
		return vv_err_set(VV_EINVAL, "%s: region '%s': no memory (NULL) for %" PRIu64 " bytes", p->call, p->name, rows.n * rows.len);
	all = (struct vv_want){ &from->runs, 0, rows.n * rows.len, p->to, p->name };
	rc = vv_device_restore_begin(&host_copies, &all, 1);
	return vv_device_restore_end(&host_copies, rc ? rc : fill(r, &all, &rows));
}

static int locked_read(struct varve_reader *r, uint64_t epoch, uint32_t rank, struct region_part *p)
{
	int rc = vv_reader_handle_enter(r, p->call, true);

	if (rc)
		return rc;
	rc = p->name ? work_on_epoch(r, epoch, rank, read_part, p) : vv_err_set(VV_EINVAL, "%s: the name of a region is needed", p->call);
	return vv_reader_handle_leave(r, rc);
}

int varve_reader_read(varve_reader *r, uint64_t epoch, uint32_t rank, const char *name, uint64_t start, uint64_t bytes, void *p)
{
	struct region_part part = { "varve_reader_read", name, true, &start, &bytes, p };

	return locked_read(r, epoch, rank, &part);
}

int varve_reader_read_part(varve_reader *r, uint64_t epoch, uint32_t rank, const char *name, const uint64_t *start, const uint64_t *count, void *p)
{
	struct region_part part = { "varve_reader_read_part", name, false, start, count, p };

	return locked_read(r, epoch, rank, &part);
}
