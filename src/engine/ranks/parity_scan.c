#include "engine/ranks/parity_scan.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/ranks/exchange.h"
#include "engine/ranks/parity_file.h"
#include <string.h>

struct parity_scan {
	const struct vv_parity_io *io;
	struct vv_parity_job *j;
	struct vv_parity_file *file;
	uint8_t *room;      /* for a block */
	struct vv_buf bad;  /* words: object, block */
};

static void add_bad(struct parity_scan *s, uint64_t object, uint64_t block)
{
	vv_buf_add(&s->bad, &object, sizeof(object));
	vv_buf_add(&s->bad, &block, sizeof(block));
}

static uint64_t object_number(const struct vv_parity_block *x, bool parity)
{
	return (uint64_t)x->member << 1 | parity;
}

static int scan_block(struct parity_scan *s, const struct vv_parity_block *x, bool parity)
{
	const struct vv_parity_object *o = (parity ? s->j->parity : s->j->data) + x->member;
	const struct vv_lineage *lin = o->there && x->len ? vv_parity_build_lineage(s->io, o->place) : NULL;
	int rc = lin ? vv_parity_file_read(&s->file[x->member], lin, s->j, parity, x, s->room) : 0;

	if (rc != VV_EDAMAGED && rc != VV_ENOENT)
		return rc;
	add_bad(s, object_number(x, parity), x->number);
	vv_err_clear();
	return 0;
}

/* A layer without checks of its blocks is intact as a whole, or not at all. */
static void scan_digest(struct parity_scan *s, size_t member)
{
	const struct vv_parity_object *o = &s->j->data[member];
	struct vv_digest found;

	if (!o->there || !vv_parity_build_lineage(s->io, o->place) || s->file[member].checks.n_data)
		return;
	vv_parity_layer_digest(s->file[member].found, o->n_blocks, &found);
	for (size_t i = 0; !vv_digest_equal(&found, &s->j->digest[member]) && i < o->n_blocks; i++)
		add_bad(s, (uint64_t)member << 1, i);
}

static int scan_all(struct parity_scan *s)
{
	const struct vv_parity_plan *p = &s->j->plan;
	size_t n = s->j->head.n_layers;
	int rc;

	s->file = vv_mem_new(n, sizeof(*s->file));
	s->room = vv_mem_new(p->block_len, 1);
	rc = s->file && s->room ? 0 : VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = vv_parity_file_init(&s->file[i], s->j, i);
	for (size_t i = 0; rc == 0 && i < p->n_stripes; i++)
		for (unsigned k = 0; rc == 0 && k < (unsigned)(p->code.k + p->code.m); k++)
			rc = scan_block(s, &vv_parity_plan_stripe(p, i)[k], k >= p->code.k);
	for (size_t i = 0; rc == 0 && i < n; i++)
		scan_digest(s, i);
	for (size_t i = 0; s->file && i < n; i++)
		vv_parity_file_fini(&s->file[i]);
	vv_mem_free(s->file);
	vv_mem_free(s->room);
	return rc ? rc : vv_buf_check(&s->bad);
}

static int note_bad(struct vv_parity_job *j, const uint8_t *p, size_t n)
{
	uint64_t word[2];
	int rc = 0;

	for (size_t i = 0; rc == 0 && i + sizeof(word) <= n; i += sizeof(word)) {
		memcpy(word, p + i, sizeof(word));
		if (word[0] >> 1 >= j->head.n_layers)
			return vv_err_set(VV_EPEER, "a rank names a damaged block that cannot be");
		rc = vv_parity_job_add_bad((word[0] & 1 ? j->parity : j->data) + (word[0] >> 1), word[1]);
	}
	return rc;
}

int vv_parity_scan_run(const struct vv_parity_io *io, struct vv_parity_job *j)
{
	enum { MOST = 1 << 28 };
	struct parity_scan s = { .io = io, .j = j };
	struct vv_exchange m = { 0 };
	int rc = scan_all(&s);

	if (!io->group) {
		rc = rc ? rc : note_bad(j, s.bad.p, s.bad.n);
	} else {
		rc = vv_exchange_gather(&m, io->group, rc, s.bad.p, s.bad.n, MOST);
		for (uint32_t r = 0; rc == 0 && r < io->group->size; r++)
			rc = m.in_len[r] ? note_bad(j, vv_exchange_from(&m, io->group, r), (size_t)m.in_len[r]) : 0;
		vv_exchange_free(&m, io->group);
		rc = vv_group_agree(io->group, io->group->comm, rc);
	}
	vv_buf_fini(&s.bad);
	return rc;
}
