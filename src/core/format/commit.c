#include "core/format/commit.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/run.h"
#include <string.h>

static const char commit_magic[8] = { 'V', 'A', 'R', 'V', 'E', 'C', 'M', 'T' };
static const char lineage_magic[8] = { 'V', 'A', 'R', 'V', 'E', 'L', 'I', 'N' };

void vv_commit_fini(struct vv_commit *c)
{
	vv_mem_free(c->rank);
	*c = (struct vv_commit){ 0 };
}

struct vv_commit_sums vv_commit_sum(const struct vv_commit *c)
{
	struct vv_commit_sums s = { 0 };

	for (uint32_t i = 0; i < c->n_ranks; i++) {
		s.memory += c->rank[i].memory;
		s.stored += c->rank[i].stored;
		s.file_len += c->rank[i].file_len;
	}
	return s;
}

static void put_check(struct vv_buf *out, size_t start)
{
	if (!out->failed)
		vv_wire_put_u64(out, vv_digest_check(out->p + start, out->n - start));
}

void vv_commit_put(const struct vv_commit *c, struct vv_buf *out)
{
	size_t start = out->n;

	vv_buf_add(out, commit_magic, sizeof(commit_magic));
	vv_wire_put_u16(out, 1);
	vv_wire_put_u16(out, 0);
	vv_wire_put_u32(out, c->n_ranks);
	vv_buf_add(out, c->lineage, sizeof(c->lineage));
	vv_wire_put_u64(out, c->epoch);
	vv_wire_put_u64(out, c->parent);
	vv_wire_put_u64(out, c->time_ns);
	for (uint32_t i = 0; i < c->n_ranks; i++) {
		vv_buf_add(out, &c->rank[i].head, sizeof(c->rank[i].head));
		vv_wire_put_u64(out, c->rank[i].file_len);
		vv_wire_put_u64(out, c->rank[i].payload);
		vv_wire_put_u64(out, c->rank[i].memory);
		vv_wire_put_u64(out, c->rank[i].stored);
		vv_wire_put_u64(out, c->rank[i].storage_node);
		vv_wire_put_u64(out, 0);
	}
	put_check(out, start);
}

/* Magic, version and the check at the end, common to both records. */
static int open_record(struct vv_wire *w, const char magic[8], const void *p, size_t n, const char *what)
{
	struct vv_wire last = vv_wire_over((const uint8_t *)p + n - 8, 8);
	unsigned version, flags;

	*w = vv_wire_over(p, n - 8);
	if (memcmp(vv_wire_bytes(w, 8), magic, 8) != 0)
		return vv_err_set(VV_EDAMAGED, "not a %s record", what);
	if (vv_wire_u64(&last) != vv_digest_check(p, n - 8))
		return vv_err_set(VV_EDAMAGED, "%s record: checksum mismatch", what);
	version = vv_wire_u16(w);
	flags = vv_wire_u16(w);
	if (version != 1 || flags)
		return vv_err_set(VV_EDAMAGED, "%s record: format version %u, this varve reads 1", what, version);
	return 0;
}

static void get_rank(struct vv_wire *w, uint32_t rank, struct vv_commit_rank *r)
{
	const uint8_t *head = vv_wire_bytes(w, sizeof(r->head));

	if (head)
		memcpy(&r->head, head, sizeof(r->head));
	r->file_len = vv_wire_u64(w);
	r->payload = vv_wire_u64(w);
	r->memory = vv_wire_u64(w);
	r->stored = vv_wire_u64(w);
	r->storage_node = vv_wire_u64(w);
	w->bad |= r->storage_node > (uint64_t)rank + 1;
	w->bad |= vv_wire_u64(w) != 0;
}

int vv_commit_get(struct vv_commit *c, const void *p, size_t n)
{
	struct vv_wire w;
	int rc;

	if (n < VV_COMMIT_FIXED + VV_COMMIT_PER_RANK)
		return vv_err_set(VV_EDAMAGED, "commit record: %zu bytes are too few", n);
	rc = open_record(&w, commit_magic, p, n, "commit");
	if (rc)
		return rc;
	c->n_ranks = vv_wire_u32(&w);
	memcpy(c->lineage, vv_wire_bytes(&w, 16), 16);
	c->epoch = vv_wire_u64(&w);
	c->parent = vv_wire_u64(&w);
	c->time_ns = vv_wire_u64(&w);
	if (c->n_ranks < 1 || c->n_ranks > VV_MAX_RANKS || c->epoch < 1 || c->epoch > VV_MAX_EPOCH ||
	    c->parent >= c->epoch || vv_wire_left(&w) != (size_t)c->n_ranks * VV_COMMIT_PER_RANK) {
		c->n_ranks = 0;
		return vv_err_set(VV_EDAMAGED, "commit record: impossible numbers");
	}
	c->rank = vv_mem_new(c->n_ranks, sizeof(*c->rank));
	if (!c->rank)
		return VV_ENOMEM;
	for (uint32_t i = 0; i < c->n_ranks; i++)
		get_rank(&w, i, &c->rank[i]);
	return w.bad ? vv_err_set(VV_EDAMAGED, "commit record: malformed rank") : 0;
}

bool vv_commit_is_same(const struct vv_commit *a, const struct vv_commit *b)
{
	struct vv_buf x = { 0 }, y = { 0 };
	bool same;

	vv_commit_put(a, &x);
	vv_commit_put(b, &y);
	same = !x.failed && !y.failed && x.n == y.n && memcmp(x.p, y.p, x.n) == 0;
	vv_buf_fini(&x);
	vv_buf_fini(&y);
	return same;
}

void vv_commit_put_lineage(const uint8_t id[16], uint64_t time_ns, struct vv_buf *out)
{
	size_t start = out->n;

	vv_buf_add(out, lineage_magic, sizeof(lineage_magic));
	vv_wire_put_u16(out, 1);
	vv_wire_put_u16(out, 0);
	vv_wire_put_u32(out, 0);
	vv_buf_add(out, id, 16);
	vv_wire_put_u64(out, time_ns);
	vv_wire_put_u64(out, 0);
	put_check(out, start);
}

int vv_commit_get_lineage(uint8_t id[16], uint64_t *time_ns, const void *p, size_t n)
{
	const uint8_t *found;
	uint64_t zero, when;
	struct vv_wire w;
	int rc;

	if (n != VV_COMMIT_LINEAGE)
		return vv_err_set(VV_EDAMAGED, "lineage record: %zu bytes, not %d", n, VV_COMMIT_LINEAGE);
	rc = open_record(&w, lineage_magic, p, n, "lineage");
	if (rc)
		return rc;
	zero = vv_wire_u32(&w);
	found = vv_wire_bytes(&w, 16);
	when = vv_wire_u64(&w);
	zero |= vv_wire_u64(&w);
	if (w.bad || zero)
		return vv_err_set(VV_EDAMAGED, "lineage record: malformed");
	memcpy(id, found, 16);
	*time_ns = when;
	return 0;
}
