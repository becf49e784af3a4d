#include "image/criu/pagemap_image.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/wire.h"
#include "core/format/run.h"
#include "reader/proto.h"
#include <unistd.h>

enum {
	HEAD_PAGES = 1,
	ADDR = 1, COUNT = 2, IN_PARENT = 3, FLAGS = 4, COUNT_WIDE = 5, /* the last since criu 4 */
	LAZY = 2, PRESENT = 4,
};

static int nonsense(void)
{
	return vv_err_set(VV_EDAMAGED, "the map of its pages makes no sense");
}

void vv_pagemap_image_fini(struct vv_pagemap_image *m)
{
	vv_mem_free(m->v);
	*m = (struct vv_pagemap_image){ 0 };
}

static int read_head(struct vv_pagemap_image *m, struct vv_proto p)
{
	struct vv_proto_field f;

	while (vv_proto_next(&p, &f))
		if (f.number == HEAD_PAGES)
			m->pages = f.value;
	return m->pages ? 0 : nonsense();
}

static int read_entry(struct vv_pagemap_image *m, struct vv_proto p)
{
	uint64_t addr = 0, count = 0, flags = PRESENT, end = m->n ? m->v[m->n - 1].addr + m->v[m->n - 1].len : 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct vv_proto_field f;

	while (vv_proto_next(&p, &f)) {
		addr = f.number == ADDR ? f.value : addr;
		count = (f.number == COUNT && !count) || (f.number == COUNT_WIDE && f.value) ? f.value : count;
		flags = f.number == FLAGS ? f.value : f.number == IN_PARENT && f.value ? 0 : flags;
	}
	if (!(flags & PRESENT))
		return 0;
	if (count == 0 || count > VV_MAX_REGION_BYTES / page || addr % page || addr < end || addr > UINT64_MAX - count * page)
		return nonsense();
	if (vv_mem_room(&m->v, m->n, &m->cap, sizeof(*m->v)) < 0)
		return VV_ENOMEM;
	m->v[m->n++] = (struct vv_pagemap_image_entry){ addr, count * page, m->len, flags & LAZY };
	m->len += count * page;
	return m->len > VV_MAX_REGION_BYTES ? nonsense() : 0;
}

int vv_pagemap_image_read(const uint8_t *image, size_t n, struct vv_pagemap_image *out)
{
	struct vv_wire w = vv_wire_over(image, n);
	int rc = 0;

	*out = (struct vv_pagemap_image){ 0 };
	vv_wire_u64(&w); /* two magic numbers */
	for (bool head = true; rc == 0 && !w.bad && vv_wire_left(&w); head = false) {
		uint32_t len = vv_wire_u32(&w);
		const uint8_t *entry = vv_wire_bytes(&w, len);

		if (entry)
			rc = head ? read_head(out, (struct vv_proto){ entry, len }) : read_entry(out, (struct vv_proto){ entry, len });
	}
	if (rc == 0 && (w.bad || !out->pages))
		rc = nonsense();
	if (rc)
		vv_pagemap_image_fini(out);
	return rc;
}
