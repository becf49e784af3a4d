#include "engine/ranks/parity_file.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/name.h"
#include <inttypes.h>
#include <string.h>

enum { HEAD_USUAL = 4096 };

/* Reads the head out of an open object. */
static int read_head(struct vv_get *g, struct vv_parity_head *out)
{
	size_t n = g->size < HEAD_USUAL ? (size_t)g->size : HEAD_USUAL;
	uint8_t *p = vv_mem_new(n, 1), *grown;
	int rc = p ? vv_store_get_read(g, 0, p, n) : VV_ENOMEM;
	int64_t len = rc ? rc : vv_parity_head_get(out, p, n, g->size);

	if (len > 0 && (uint64_t)len > n) {
		grown = vv_mem_grow(p, (size_t)len, 1);
		p = grown ? grown : p;
		rc = grown ? vv_store_get_read(g, 0, p, (size_t)len) : VV_ENOMEM;
		len = rc ? rc : vv_parity_head_get(out, p, (size_t)len, g->size);
	}
	vv_mem_free(p);
	return len < 0 ? (int)len : 0;
}

int vv_parity_file_head(const struct vv_lineage *lin, uint64_t epoch, uint32_t rank, uint32_t ranks, struct vv_parity_head *out)
{
	struct vv_parity_head h = { 0 };
	char object[VV_NAME_MAX];
	struct vv_get *g = NULL;
	int rc;

	vv_name_parity(object, lin->name, epoch, rank, ranks);
	rc = vv_store_get_open(lin->store, object, &g);
	if (rc)
		return rc;
	rc = read_head(g, &h);
	vv_store_get_close(g);
	if (rc == 0 && (h.epoch != epoch || h.rank != rank || h.n_ranks != ranks || memcmp(h.lineage, lin->id, sizeof(h.lineage)) != 0))
		rc = vv_err_set(VV_EDAMAGED, "parity: of another epoch, rank or lineage");
	if (rc) {
		vv_parity_head_fini(&h);
		return rc == VV_EDAMAGED ? vv_err_context(rc, "'%s/%s'", lin->store->url, object) : rc;
	}
	*out = h;
	return 0;
}

/* The object of a member; its head describes this set. */
static int open_parity(const struct vv_lineage *lin, const struct vv_parity_job *j, size_t member, struct vv_get **out)
{
	struct vv_parity_head h = { 0 };
	char object[VV_NAME_MAX];
	uint32_t rank = j->head.layer[member].rank;
	int rc = vv_parity_file_head(lin, j->head.epoch, rank, j->head.n_ranks, &h);

	vv_name_parity(object, lin->name, j->head.epoch, rank, j->head.n_ranks);
	if (rc == 0 && !vv_parity_head_same(&h, &j->head))
		rc = vv_err_set(VV_EDAMAGED, "'%s/%s': parity: of other layers", lin->store->url, object);
	vv_parity_head_fini(&h);
	return rc ? rc : vv_store_get_open(lin->store, object, out);
}

static int read_checks(struct vv_get *g, const struct vv_parity_job *j, size_t member, struct vv_parity_checks *out)
{
	uint64_t at = j->head_len + j->plan.parity_len[member];
	uint64_t most = vv_parity_checks_len(j->parity[member].n_blocks, j->data[member].n_blocks, j->head.n_layers);
	uint8_t *p;
	int rc;

	if (g->size <= at || g->size - at > most)
		return vv_err_set(VV_EDAMAGED, "'%s/%s': parity: %" PRIu64 " bytes, which is not as its layers say", g->store->url, g->name, g->size);
	p = vv_mem_new((size_t)(g->size - at), 1);
	rc = p ? vv_store_get_read(g, at, p, (size_t)(g->size - at)) : VV_ENOMEM;
	if (rc == 0)
		rc = vv_parity_checks_get(out, p, (size_t)(g->size - at), j->parity[member].n_blocks, j->data[member].n_blocks,
					  j->head.n_layers);
	vv_mem_free(p);
	return rc == VV_EDAMAGED ? vv_err_context(rc, "'%s/%s'", g->store->url, g->name) : rc;
}

int vv_parity_file_checks(const struct vv_lineage *lin, const struct vv_parity_job *j, size_t member, struct vv_parity_checks *out)
{
	struct vv_get *g = NULL;
	int rc = open_parity(lin, j, member, &g);

	if (rc == 0)
		rc = read_checks(g, j, member, out);
	vv_store_get_close(g);
	return rc;
}

int vv_parity_file_init(struct vv_parity_file *f, const struct vv_parity_job *j, size_t member)
{
	*f = (struct vv_parity_file){ .found = vv_mem_new(j->data[member].n_blocks, sizeof(*f->found)),
				      .was_read = vv_mem_new(j->data[member].n_blocks, 1) };
	return f->found && f->was_read ? 0 : VV_ENOMEM;
}

void vv_parity_file_fini(struct vv_parity_file *f)
{
	vv_store_get_close(f->layer);
	vv_store_get_close(f->parity);
	vv_parity_checks_fini(&f->checks);
	vv_mem_free(f->found);
	vv_mem_free(f->was_read);
	*f = (struct vv_parity_file){ 0 };
}

static int open_layer(struct vv_parity_file *f, const struct vv_lineage *lin, const struct vv_parity_layer *l, uint64_t epoch)
{
	char object[VV_NAME_MAX];
	int rc;

	vv_name_layer(object, lin->name, epoch, l->rank);
	rc = f->layer ? 0 : vv_store_get_open(lin->store, object, &f->layer);
	if (rc == 0 && f->layer->size != l->len)
		rc = vv_err_set(VV_EDAMAGED, "'%s/%s': %" PRIu64 " bytes, where parity was made over %" PRIu64, lin->store->url, object,
				f->layer->size, l->len);
	return rc;
}

/* Without them a damaged block is found by the digest of the whole layer. */
static int ask_checks(struct vv_parity_file *f, const struct vv_lineage *lin, const struct vv_parity_job *j, size_t member)
{
	int rc = f->asked || !j->has_digests ? 0 : vv_parity_file_checks(lin, j, member, &f->checks);

	f->asked = true;
	if (rc == VV_ENOENT || rc == VV_EDAMAGED) {
		vv_err_clear();
		rc = 0;
	}
	return rc;
}

static int damaged(const struct vv_get *g, uint64_t at, uint32_t len)
{
	return vv_err_set(VV_EDAMAGED, "'%s/%s': bytes %" PRIu64 " to %" PRIu64 " are not as parity was made over them", g->store->url, g->name,
			  at, at + len);
}

static int read_layer(struct vv_parity_file *f, const struct vv_lineage *lin, const struct vv_parity_job *j, const struct vv_parity_block *b,
		      uint8_t *to)
{
	int rc = open_layer(f, lin, &j->head.layer[b->member], j->head.epoch);

	if (rc == 0)
		rc = ask_checks(f, lin, j, b->member);
	if (rc == 0)
		rc = vv_store_get_read(f->layer, b->at, to, b->len);
	if (rc)
		return rc;
	f->found[b->number] = vv_digest_check(to, b->len);
	f->was_read[b->number] = 1;
	return f->checks.n_data && f->checks.data[b->number] != f->found[b->number] ? damaged(f->layer, b->at, b->len) : 0;
}

static int read_parity(struct vv_parity_file *f, const struct vv_lineage *lin, const struct vv_parity_job *j, const struct vv_parity_block *b,
		       uint8_t *to)
{
	uint64_t at = j->head_len + b->at;
	int rc = ask_checks(f, lin, j, b->member);

	if (rc == 0 && !f->checks.parity)
		rc = vv_err_set(VV_EDAMAGED, "the parity of rank %u of epoch %" PRIu64 " in store '%s' is damaged or gone",
				j->head.layer[b->member].rank, j->head.epoch, lin->store->url);
	if (rc == 0 && !f->parity)
		rc = open_parity(lin, j, b->member, &f->parity);
	if (rc == 0)
		rc = vv_store_get_read(f->parity, at, to, b->len);
	if (rc)
		return rc;
	return vv_digest_check(to, b->len) == f->checks.parity[b->number] ? 0 : damaged(f->parity, at, b->len);
}

int vv_parity_file_read(struct vv_parity_file *f, const struct vv_lineage *lin, const struct vv_parity_job *j, bool parity,
			const struct vv_parity_block *b, uint8_t *to)
{
	return (parity ? read_parity : read_layer)(f, lin, j, b, to);
}
