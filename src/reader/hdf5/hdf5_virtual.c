/* Virtual datasets: a list of maps in a global heap. Each map names a file and a dataset, the
 * selected elements, and their destination. Maps within this file are kept; any other map makes the
 * variable partial. */
#include "reader/hdf5/hdf5_virtual.h"
#include "base/err.h"
#include "base/mem.h"
#include "reader/hdf5/hdf5_file.h"
#include "reader/hdf5/hdf5_priv.h"
#include <string.h>

enum { OBJECT_MAX = 1 << 20, MAPS = 1 << 12, SLABS = 1 << 13, HYPERSLABS = 2, ALL = 3, REGULAR = 1 };

/* Reads object `index` of a collection of the global heap into `to`. */
static int get_object(struct vv_hdf5 *h, uint64_t at, uint64_t index, struct vv_buf *to)
{
	uint8_t text[16 + 8];
	struct vv_wire w;
	uint64_t end, size;
	int rc = at == VV_HDF5_NOWHERE ? VV_HDF5_BROKEN
				       : vv_hdf5_file_block(h, at, "GCOL", text, 8u + h->length_size, &w);

	if (rc)
		return rc;
	vv_wire_u32(&w);
	size = vv_hdf5_file_length(h, &w);
	if (!vv_hdf5_file_has(h, at, size))
		return VV_HDF5_BROKEN;
	end = at + size;
	for (at += 8u + h->length_size; at < end && end - at >= 8u + h->length_size; at += (size + 7) / 8 * 8) {
		uint16_t found;

		rc = vv_hdf5_file_get(h, at, text, 8u + h->length_size);
		if (rc)
			return rc;
		w = vv_wire_over(text, 8u + h->length_size);
		found = vv_wire_u16(&w);
		vv_wire_bytes(&w, 6);
		size = vv_hdf5_file_length(h, &w);
		at += 8u + h->length_size;
		if (found == 0 || size > end - at) /* 0 is the free space at the end */
			return VV_HDF5_BROKEN;
		if (found != index)
			continue;
		if (size > OBJECT_MAX)
			return VV_HDF5_BROKEN;
		if (!vv_buf_room(to, size + 1))
			return VV_ENOMEM;
		rc = vv_hdf5_file_get(h, at, to->p, size);
		to->n = size;
		return rc;
	}
	return VV_HDF5_BROKEN;
}

static const char *take_text(struct vv_wire *w, size_t *n)
{
	size_t left = vv_wire_left(w);
	const uint8_t *p = vv_wire_bytes(w, 0);

	*n = p && left ? strnlen((const char *)p, left) : 0;
	return *n < left ? (const char *)vv_wire_bytes(w, *n + 1) : NULL;
}

static void take_regular(struct vv_wire *w, unsigned rank, unsigned size, struct vv_hyperslab *s)
{
	for (unsigned i = 0; i < rank; i++) {
		s->start[i] = vv_hdf5_file_uint(w, size);
		s->stride[i] = vv_hdf5_file_uint(w, size);
		s->count[i] = vv_hdf5_file_uint(w, size);
		s->block[i] = vv_hdf5_file_uint(w, size);
	}
}

static int take_block(struct vv_wire *w, unsigned rank, unsigned size, struct vv_hyperslab *s)
{
	for (unsigned i = 0; i < rank; i++) {
		s->start[i] = vv_hdf5_file_uint(w, size);
		s->stride[i] = s->count[i] = 1;
	}
	for (unsigned i = 0; i < rank; i++) {
		uint64_t last = vv_hdf5_file_uint(w, size);

		if (last < s->start[i] || last == UINT64_MAX)
			return VV_HDF5_BROKEN;
		s->block[i] = last - s->start[i] + 1;
	}
	return 0;
}

/* Version 1 has a list of blocks, version 2 a regular selection. Version 3 has a flag for the kind,
 * and a size of its numbers. */
static int take_slabs(struct vv_hdf5 *h, struct vv_wire *w, struct vv_selection *s)
{
	unsigned version = vv_wire_u32(w), flags = version == 1 ? 0 : vv_wire_u8(w),
		 size = version == 3   ? vv_wire_u8(w)
			: version == 2 ? 8
				       : 4;
	uint64_t n = 1;
	unsigned rank;
	int rc = 0;

	vv_wire_bytes(w, version == 1 ? 8 : version == 2 ? 4 : 0); /* reserved, length */
	rank = vv_wire_u32(w);
	if (version == 0 || version > 3 || (version == 2 && !(flags & REGULAR)) || size > 8 || rank == 0 ||
	    rank > VV_MAX_DIMS)
		return VV_HDF5_BROKEN;
	if (!(flags & REGULAR))
		n = vv_hdf5_file_uint(w, size);
	if (w->bad || n == 0 || n > SLABS || vv_hdf5_file_spend(h, n * sizeof(*s->slab)))
		return VV_HDF5_BROKEN;
	s->slab = vv_mem_new(n, sizeof(*s->slab));
	if (!s->slab)
		return VV_ENOMEM;
	s->ndim = (uint8_t)rank;
	if (flags & REGULAR)
		take_regular(w, rank, size, &s->slab[s->n++]);
	while (rc == 0 && s->n < n)
		rc = take_block(w, rank, size, &s->slab[s->n++]);
	return w->bad ? VV_HDF5_BROKEN : rc;
}

static int take_selection(struct vv_hdf5 *h, struct vv_wire *w, struct vv_selection *s)
{
	uint32_t kind = vv_wire_u32(w);

	if (kind == HYPERSLABS)
		return take_slabs(h, w, s);
	vv_wire_bytes(w, 12); /* version, reserved, length */
	s->all = kind == ALL;
	return s->all && !w->bad ? 0 : VV_HDF5_BROKEN;
}

enum { SHARED_FILE = 1, SHARED_SOURCE = 2, SAME_FILE = 4 }; /* flags of an entry, version 1 */

struct map_name {
	const char *p;
	size_t len;
};

struct map_names { /* of the entries so far */
	struct map_name file[MAPS], source[MAPS];
};

/* A name, or the number of an earlier entry with the same name; the latter in blocks of version 1,
 * which HDF5 2.0 writes. */
static struct map_name take_name(struct vv_hdf5 *h, struct vv_wire *w, bool shared, const struct map_name *before, uint64_t i)
{
	struct map_name name = {0};
	uint64_t k = shared ? vv_hdf5_file_length(h, w) : 0;

	if (!shared)
		name.p = take_text(w, &name.len);
	else if (!w->bad && k < i)
		name = before[k];
	return name;
}

static int take_map(struct vv_hdf5 *h, struct vv_wire *w, uint32_t variable, unsigned version, struct map_names *all, uint64_t i)
{
	struct vv_variable *v = &h->out->variable[variable];
	struct vv_selection from = {0}, to = {0};
	unsigned flags = version ? vv_wire_u8(w) : 0;
	struct map_name file = {".", 1}, source;
	int rc;

	if (!(flags & SAME_FILE))
		file = take_name(h, w, flags & SHARED_FILE, all->file, i);
	source = take_name(h, w, flags & SHARED_SOURCE, all->source, i);
	all->file[i] = file;
	all->source[i] = source;
	rc = file.p && source.p ? take_selection(h, w, &from) : VV_HDF5_BROKEN;
	if (rc == 0)
		rc = take_selection(h, w, &to);
	if (rc == 0 && (file.len != 1 || file.p[0] != '.')) {
		v->lack = "it is made of datasets of other files";
		rc = VV_HDF5_BROKEN;
	}
	if (rc == 0 && memchr(source.p, '%', source.len)) {
		v->lack = "the names of its sources are patterns";
		rc = VV_HDF5_BROKEN;
	}
	if (rc == 0)
		return vv_reader_add_map(h->out, variable, source.p, source.len, &from, &to);
	vv_mem_free(from.slab);
	vv_mem_free(to.slab);
	return rc;
}

int vv_hdf5_virtual_add(struct vv_hdf5 *h, const struct vv_hdf5_object *o, uint32_t variable)
{
	struct vv_buf text = {0};
	struct map_names *all = vv_mem_new(1, sizeof(*all));
	struct vv_wire w;
	unsigned version;
	uint64_t n;
	int rc = !all ? VV_ENOMEM : get_object(h, o->layout.at, o->layout.len, &text);

	h->out->variable[variable].made = true;
	h->out->variable[variable].lack = "its maps are of a kind that is not known here";
	if (rc == 0) {
		w = vv_wire_over(text.p, text.n);
		version = vv_wire_u8(&w);
		rc = version <= 1 ? 0 : VV_HDF5_BROKEN;
		n = vv_hdf5_file_length(h, &w);
		for (uint64_t i = 0; rc == 0 && i < n; i++)
			rc = i < MAPS && !w.bad ? take_map(h, &w, variable, version, all, i) : VV_HDF5_BROKEN;
	}
	vv_buf_fini(&text);
	vv_mem_free(all);
	return rc;
}
