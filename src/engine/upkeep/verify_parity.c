#include "engine/upkeep/verify_parity.h"
#include "base/err.h"
#include "base/mem.h"
#include "core/format/run.h"
#include "engine/ranks/parity_file.h"

static int read_blocks(const struct vv_lineage *lin, const struct vv_parity_job *j, size_t member, struct vv_parity_file *f)
{
	const struct vv_parity_plan *p = &j->plan;
	uint8_t *room = vv_mem_new(p->block_len, 1);
	int rc = room ? 0 : VV_ENOMEM;

	for (size_t s = 0; rc == 0 && s < p->n_stripes; s++) {
		const struct vv_parity_block *b = vv_parity_plan_stripe(p, s) + p->code.k;

		for (unsigned k = 0; rc == 0 && k < p->code.m; k++)
			if (b[k].member == member)
				rc = vv_parity_file_read(f, lin, j, true, &b[k], room);
	}
	vv_mem_free(room);
	return rc;
}

int vv_verify_parity_object(const struct vv_lineage *lin, const struct vv_parity_name *p)
{
	uint32_t rank = vv_run_rank(p->layer);
	struct vv_parity_checks checks = { 0 };
	struct vv_parity_head head = { 0 };
	struct vv_parity_file f = { 0 };
	struct vv_parity_job j = { 0 };
	size_t member = 0;
	int rc = vv_parity_file_head(lin, vv_run_epoch(p->layer), rank, p->ranks, &head);

	if (rc == 0)
		rc = vv_parity_job_init_own(&j, &head, p->size);
	if (rc == VV_EINVAL)
		rc = vv_err_set(VV_EDAMAGED, "%s", vv_err_last());
	if (rc == 0) {
		member = vv_parity_job_find(&j, rank);
		j.has_digests = true;
		rc = vv_parity_file_checks(lin, &j, member, &checks);
	}
	if (rc == 0)
		rc = vv_parity_file_init(&f, &j, member);
	if (rc == 0)
		rc = read_blocks(lin, &j, member, &f);
	vv_parity_file_fini(&f);
	vv_parity_checks_fini(&checks);
	vv_parity_job_fini(&j);
	vv_parity_head_fini(&head);
	return rc;
}
