#include "cli/base/show_parity.h"
#include "base/err.h"
#include "base/search.h"
#include "cli/base/text.h"
#include "core/format/run.h"
#include "engine/ranks/parity_file.h"
#include "engine/ranks/parity_sets.h"

struct parity_summary {
	uint32_t objects, ranks;
	uint64_t bytes;
	char scheme[VV_PARITY_SCHEME];
};

static int find_scheme(const struct vv_lineage *lin, const struct vv_parity_name *p, struct parity_summary *s)
{
	struct vv_parity_head h = { 0 };
	int rc = vv_parity_file_head(lin, vv_run_epoch(p->layer), vv_run_rank(p->layer), p->ranks, &h);

	if (rc == 0)
		vv_parity_sets_scheme(h.k, h.m, s->scheme);
	vv_parity_head_fini(&h);
	return rc;
}

/* The scheme is in the head of each intact object. */
static int find(const struct vv_lineage *lin, const struct vv_listing *l, uint64_t epoch, struct parity_summary *s)
{
	size_t i;
	int rc = 0;

	*s = (struct parity_summary){ .scheme = "damaged" };
	VV_SEARCH(i, 0, l->n_parity, vv_run_epoch(l->parity[i].layer) < epoch);
	for (bool known = false; rc == 0 && i < l->n_parity && vv_run_epoch(l->parity[i].layer) == epoch; i++) {
		s->objects++;
		s->ranks = l->parity[i].ranks;
		s->bytes += l->parity[i].size;
		rc = known ? 0 : find_scheme(lin, &l->parity[i], s);
		known |= rc == 0;
		rc = rc == VV_EDAMAGED || rc == VV_ENOENT ? 0 : rc;
	}
	return rc;
}

int vv_show_parity_print(struct vv_out *o, const struct vv_lineage *lin, const struct vv_listing *l, uint64_t epoch)
{
	struct parity_summary s;
	int rc = find(lin, l, epoch, &s);

	if (rc == 0 && s.objects)
		vv_out_printf(o, "  parity        %s; this store has that of %u of %u ranks, %s\n", s.scheme, s.objects, s.ranks, vv_text_size(s.bytes).s);
	return rc;
}

int vv_show_parity_put(struct vv_json *j, const struct vv_lineage *lin, const struct vv_listing *l, uint64_t epoch)
{
	struct parity_summary s;
	int rc = find(lin, l, epoch, &s);

	if (rc || !s.objects)
		return rc;
	vv_json_text(j, "redundancy", s.scheme);
	vv_json_number(j, "parity_ranks", s.objects);
	vv_json_number(j, "bytes_parity", s.bytes);
	return 0;
}
