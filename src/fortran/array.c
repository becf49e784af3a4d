/* Arrays of Fortran and their descriptors: address, type and shape.
 *
 * A region is memory that is read long after the call that declared it. An array is therefore used
 * in place, or refused. A section with gaps would have to be copied, and the copy would be gone. */
#include <ISO_Fortran_binding.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <varve/varve_comm.h>
#include <varve/varve_read.h>

/* Arguments that may be NULL are optional. */
void varve_fortran_protect(varve *const *session, const CFI_cdesc_t *name, const CFI_cdesc_t *x, int *stat, CFI_cdesc_t *errmsg);
/* global, start (from 1) and ghost: of each dimension */
void varve_fortran_protect_slab(varve *const *session, const CFI_cdesc_t *name, const CFI_cdesc_t *x, const CFI_cdesc_t *global, const CFI_cdesc_t *start,
				const CFI_cdesc_t *ghost, int *stat, CFI_cdesc_t *errmsg);
void varve_fortran_protect_shared(varve *const *session, const CFI_cdesc_t *name, const CFI_cdesc_t *x, int *stat, CFI_cdesc_t *errmsg);
void varve_fortran_protect_list(varve *const *session, const CFI_cdesc_t *name, const CFI_cdesc_t *x, int *stat, CFI_cdesc_t *errmsg);
void varve_fortran_restart_region(varve *const *session, const CFI_cdesc_t *name, const CFI_cdesc_t *x, const int64_t *epoch,
				  int *stat, CFI_cdesc_t *errmsg);
/* start: the first byte, or the first element of each dimension, from 1 */
void varve_fortran_reader_read(varve_reader *const *reader, const CFI_cdesc_t *name, const CFI_cdesc_t *x, const int64_t *start,
			       const int64_t *epoch, const int *rank, int *stat, CFI_cdesc_t *errmsg);
void varve_fortran_reader_read_part(varve_reader *const *reader, const CFI_cdesc_t *name, const CFI_cdesc_t *x, const CFI_cdesc_t *start,
				    const int64_t *epoch, const int *rank, int *stat, CFI_cdesc_t *errmsg);
void varve_fortran_give_up(void); /* varve.f90's */

enum { REFUSED = -1, LONGEST = VARVE_MAX_NAME + 512 };

struct array_name {
	/* room for a name that is too long, which the library will report */
	char s[VARVE_MAX_NAME + 2];
};

struct array {
	int type; /* an enum varve_type; VARVE_BYTES: of a kind that has no name there */
	int ndim;
	/* slowest first, as in C; a character's length is its fastest dimension */
	size_t shape[VARVE_MAX_DIMS];
	size_t bytes;
};

static const struct {
	CFI_type_t cfi;
	enum varve_type type;
} types[] = {
	{ CFI_type_int8_t, VARVE_I8 },          { CFI_type_int16_t, VARVE_I16 },          { CFI_type_int32_t, VARVE_I32 },
	{ CFI_type_int64_t, VARVE_I64 },        { CFI_type_float, VARVE_F32 },            { CFI_type_double, VARVE_F64 },
	{ CFI_type_float_Complex, VARVE_C64 },  { CFI_type_double_Complex, VARVE_C128 },  { CFI_type_Bool, VARVE_U8 },
	{ CFI_type_char, VARVE_U8 },            { CFI_type_long_double, VARVE_BYTES },
	{ CFI_type_long_double_Complex, VARVE_BYTES },
/* flang's names for half precision, which the standard lacks */
#ifdef CFI_type_half_float
	{ CFI_type_half_float, VARVE_F16 },
#endif
#ifdef CFI_type_bfloat
	{ CFI_type_bfloat, VARVE_BF16 },
#endif
/* gfortran's own names for kinds that the standard leaves to the compiler */
#ifdef CFI_type_kind_shift
#define VV_KIND(of, size) (CFI_type_t)((of) + ((size) << CFI_type_kind_shift))
	{ VV_KIND(CFI_type_Logical, 2), VARVE_U16 },    { VV_KIND(CFI_type_Logical, 4), VARVE_U32 },
	{ VV_KIND(CFI_type_Logical, 8), VARVE_U64 },    { CFI_type_ucs4_char, VARVE_U32 },
	{ VV_KIND(CFI_type_Logical, 16), VARVE_BYTES }, { VV_KIND(CFI_type_Integer, 16), VARVE_BYTES },
	{ VV_KIND(CFI_type_Real, 10), VARVE_BYTES },    { VV_KIND(CFI_type_Real, 16), VARVE_BYTES },
	{ VV_KIND(CFI_type_Complex, 10), VARVE_BYTES }, { VV_KIND(CFI_type_Complex, 16), VARVE_BYTES },
#endif
};

static int type_of(const CFI_cdesc_t *x)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].cfi == x->type)
			return (int)types[i].type;
	return REFUSED;
}

/* The bytes of one character of the array; 0: it is no array of characters. */
static size_t character_size(const CFI_cdesc_t *x)
{
#ifdef CFI_type_ucs4_char
	if (x->type == CFI_type_ucs4_char)
		return 4;
#endif
	return x->type == CFI_type_char ? 1 : 0;
}

static int refuse(const char *name, const char *words)
{
	char message[LONGEST];

	snprintf(message, sizeof(message), "region '%s': %s", name, words);
	return varve_fail(VARVE_EINVAL, message);
}

static int refuse_section(const char *name, int dimension, bool backwards)
{
	char words[256];

	snprintf(words, sizeof(words), "the array is not contiguous in memory (dimension %d %s); hand over the whole array, or a contiguous copy "
		 "that lives as long as the region", dimension, backwards ? "runs backwards" : "has gaps");
	return refuse(name, words);
}

static bool is_empty(const CFI_cdesc_t *x)
{
	for (int i = 0; i < x->rank; i++)
		if (x->dim[i].extent == 0)
			return true;
	return false;
}

/* Reads the descriptor, or returns an error that describes the array's fault. */
static int look(const char *name, const CFI_cdesc_t *x, struct array *out)
{
	size_t character = character_size(x);
	bool empty = is_empty(x);

	*out = (struct array){ .type = type_of(x), .bytes = x->elem_len };
	if (out->type == REFUSED)
		return refuse(name, "a derived type, a pointer or a polymorphic object; protect its components one by one, or its bytes with "
			      "varve_protect_bytes");
	if (!x->base_addr) /* and its extents mean nothing */
		return refuse(name, "the array is not allocated, or the pointer not associated");
	if (x->rank + 1 > VARVE_MAX_DIMS)
		return refuse(name, "too many dimensions");
	for (int i = 0; i < x->rank; i++) {
		size_t *extent = &out->shape[x->rank - 1 - i];

		if (x->dim[i].extent < 0)
			return refuse(name, "an assumed-size array (*) does not tell its size; hand over x(1:n)");
		*extent = (size_t)x->dim[i].extent;
		if (*extent > 1 && !empty && x->dim[i].sm != (CFI_index_t)out->bytes)
			return refuse_section(name, i + 1, x->dim[i].sm < 0);
		out->bytes *= *extent;
	}
	out->ndim = x->rank;
	if (character || !out->ndim)
		out->shape[out->ndim++] = character ? x->elem_len / character : 1;
	return 0;
}

/* The name without the blanks that pad it. */
static struct array_name name_of(const CFI_cdesc_t *from)
{
	const char *s = from->base_addr;
	size_t n = from->elem_len;
	struct array_name name = { "" };

	while (n && s[n - 1] == ' ')
		n--;
	if (n)
		memcpy(name.s, s, n < sizeof(name.s) ? n : sizeof(name.s) - 1);
	return name;
}

/* Does the same as the procedure of this name in varve.f90. */
static void conclude(int code, int *stat, CFI_cdesc_t *errmsg)
{
	if (stat)
		*stat = code;
	if (code == 0)
		return;
	if (errmsg && errmsg->type == CFI_type_char && errmsg->rank == 0) {
		const char *words = varve_last_error();
		size_t n = strlen(words);

		memset(errmsg->base_addr, ' ', errmsg->elem_len);
		memcpy(errmsg->base_addr, words, n < errmsg->elem_len ? n : errmsg->elem_len);
	}
	if (!stat)
		varve_fortran_give_up();
}

static int protect(varve *v, const char *name, const CFI_cdesc_t *x)
{
	struct array a;
	int rc = look(name, x, &a);

	if (rc < 0)
		return rc;
	if (a.type == VARVE_BYTES)
		return varve_protect(v, name, x->base_addr, a.bytes);
	return varve_protect_array(v, name, x->base_addr, (enum varve_type)a.type, a.ndim, a.shape);
}

void varve_fortran_protect(varve *const *session, const CFI_cdesc_t *name, const CFI_cdesc_t *x, int *stat, CFI_cdesc_t *errmsg)
{
	conclude(protect(*session, name_of(name).s, x), stat, errmsg);
}

/* ---- parts of the state of all ranks --------------------------------------------------------- */

/* The numbers of a dimension each, fastest first, as ndim numbers slowest first, less `base`. */
static int numbers(const char *name, const CFI_cdesc_t *from, int ndim, int64_t base, size_t *out)
{
	if ((int)from->dim[0].extent != ndim)
		return refuse(name, "global, start and ghost need a number for each dimension of the array");
	for (int i = 0; i < ndim; i++) {
		int64_t value;

		memcpy(&value, (const char *)from->base_addr + (ndim - 1 - i) * from->dim[0].sm, sizeof(value));
		if (value < base)
			return refuse(name, base ? "start is counted from 1" : "global and ghost are not negative");
		out[i] = (size_t)(value - base);
	}
	return 0;
}

static int protect_slab(varve *v, const char *name, const CFI_cdesc_t *x, const CFI_cdesc_t *global, const CFI_cdesc_t *start, const CFI_cdesc_t *ghost)
{
	size_t all[VARVE_MAX_DIMS], first[VARVE_MAX_DIMS], around[VARVE_MAX_DIMS] = { 0 };
	struct array a;
	int rc = look(name, x, &a);

	if (rc == 0 && (a.type == VARVE_BYTES || character_size(x) || !x->rank))
		rc = refuse(name, "a part of a global array is an array of numbers");
	if (rc == 0)
		rc = numbers(name, global, a.ndim, 0, all);
	if (rc == 0)
		rc = numbers(name, start, a.ndim, 1, first);
	if (rc == 0 && ghost)
		rc = numbers(name, ghost, a.ndim, 0, around);
	for (int i = 0; rc == 0 && i < a.ndim; i++) {
		if (around[i] > a.shape[i] / 2)
			rc = refuse(name, "the array has fewer elements than ghost cells");
		a.shape[i] -= 2 * around[i];
	}
	return rc < 0 ? rc : varve_protect_slab(v, name, x->base_addr, (enum varve_type)a.type, a.ndim, all, first, a.shape, around);
}

void varve_fortran_protect_slab(varve *const *session, const CFI_cdesc_t *name, const CFI_cdesc_t *x, const CFI_cdesc_t *global, const CFI_cdesc_t *start,
				const CFI_cdesc_t *ghost, int *stat, CFI_cdesc_t *errmsg)
{
	conclude(protect_slab(*session, name_of(name).s, x, global, start, ghost), stat, errmsg);
}

static int protect_shared(varve *v, const char *name, const CFI_cdesc_t *x)
{
	struct array a;
	int rc = look(name, x, &a);

	return rc < 0 ? rc : varve_protect_shared(v, name, x->base_addr, a.bytes);
}

void varve_fortran_protect_shared(varve *const *session, const CFI_cdesc_t *name, const CFI_cdesc_t *x, int *stat, CFI_cdesc_t *errmsg)
{
	conclude(protect_shared(*session, name_of(name).s, x), stat, errmsg);
}

/* The last dimension counts the items. */
static int protect_list(varve *v, const char *name, const CFI_cdesc_t *x)
{
	size_t width = 1;
	struct array a;
	int rc = look(name, x, &a);

	if (rc == 0 && !x->rank)
		rc = refuse(name, "a list is an array; its last dimension counts the items");
	for (int i = 1; rc == 0 && i < a.ndim; i++)
		width *= a.shape[i];
	if (rc == 0 && a.type == VARVE_BYTES)
		width *= x->elem_len;
	return rc < 0 ? rc : varve_protect_list(v, name, x->base_addr, (enum varve_type)a.type, width, a.shape[0]);
}

void varve_fortran_protect_list(varve *const *session, const CFI_cdesc_t *name, const CFI_cdesc_t *x, int *stat, CFI_cdesc_t *errmsg)
{
	conclude(protect_list(*session, name_of(name).s, x), stat, errmsg);
}

/* ---- single regions -------------------------------------------------------------------------- */

/* The type of bytes is unknown, so it is not checked. */
static int compare_type(const char *name, enum varve_type stored, int type)
{
	char message[LONGEST];

	if ((int)stored == type || stored == VARVE_BYTES || type == VARVE_BYTES)
		return 0;
	snprintf(message, sizeof(message), "region '%s' was saved as another type than that of the variable it is read into", name);
	return varve_fail(VARVE_EMISMATCH, message);
}

static int check_type(varve *v, uint64_t epoch, const char *name, int type)
{
	struct varve_region_info info;
	int rc = varve_region(v, epoch, name, &info);

	return rc < 0 ? rc : compare_type(name, info.type, type);
}

static int restart_region(varve *v, const char *name, const CFI_cdesc_t *x, uint64_t epoch)
{
	struct array a;
	int rc = look(name, x, &a);

	if (rc == 0)
		rc = check_type(v, epoch, name, a.type);
	return rc < 0 ? rc : varve_restart_region(v, epoch, name, x->base_addr, a.bytes);
}

void varve_fortran_restart_region(varve *const *session, const CFI_cdesc_t *name, const CFI_cdesc_t *x, const int64_t *epoch,
				  int *stat, CFI_cdesc_t *errmsg)
{
	int rc = restart_region(*session, name_of(name).s, x, epoch ? (uint64_t)*epoch : VARVE_LATEST);

	conclude(rc, stat, errmsg);
}

/* ---- readers --------------------------------------------------------------------------------- */

/* Finds the region. *epoch becomes the number of the newest epoch, if it is VARVE_LATEST. */
static int find_region(varve_reader *r, uint64_t *epoch, uint32_t rank, const char *name, const struct varve_stored_region **out)
{
	const struct varve_stored_region *const *list;
	size_t n, i = 0;
	int rc = *epoch == VARVE_LATEST ? varve_reader_latest(r, epoch) : 0;

	if (rc == 0)
		rc = varve_reader_regions(r, *epoch, rank, &list, &n);
	if (rc)
		return rc;
	while (i < n && strcmp(list[i]->name, name) != 0)
		i++;
	if (i == n) /* the error lists the regions */
		return varve_reader_read(r, *epoch, rank, name, 0, 0, NULL);
	*out = list[i];
	return 0;
}

static int read_bytes(varve_reader *r, const char *name, const CFI_cdesc_t *x, int64_t start, uint64_t epoch, uint32_t rank)
{
	struct array a;
	int rc = look(name, x, &a);

	if (rc == 0 && start < 1)
		rc = refuse(name, "start is counted from 1");
	return rc < 0 ? rc : varve_reader_read(r, epoch, rank, name, (uint64_t)start - 1, a.bytes, x->base_addr);
}

void varve_fortran_reader_read(varve_reader *const *reader, const CFI_cdesc_t *name, const CFI_cdesc_t *x, const int64_t *start,
			       const int64_t *epoch, const int *rank, int *stat, CFI_cdesc_t *errmsg)
{
	int rc = read_bytes(*reader, name_of(name).s, x, start ? *start : 1, epoch ? (uint64_t)*epoch : VARVE_LATEST,
			    rank ? (uint32_t)*rank : 0);

	conclude(rc, stat, errmsg);
}

/* The array's shape is the count, and a missing start is the first element. */
static int read_part(varve_reader *r, const char *name, const CFI_cdesc_t *x, const CFI_cdesc_t *start, uint64_t epoch, uint32_t rank)
{
	uint64_t from[VARVE_MAX_DIMS] = { 0 }, count[VARVE_MAX_DIMS];
	const struct varve_stored_region *stored = NULL;
	struct array a;
	int rc = look(name, x, &a), given = start ? (int)start->dim[0].extent : 0, ndim;

	if (rc == 0)
		rc = find_region(r, &epoch, rank, name, &stored);
	if (rc == 0)
		rc = compare_type(name, stored->type, a.type);
	if (rc < 0)
		return rc;
	ndim = stored->ndim ? stored->ndim : 1;
	if (a.ndim != ndim || (start && given != ndim))
		return refuse(name, "the variable, and start, need the dimensions of the region");
	for (int i = 0; i < ndim; i++) {
		count[i] = a.shape[i];
		if (start) {
			int64_t first;

			memcpy(&first, (const char *)start->base_addr + (ndim - 1 - i) * start->dim[0].sm, sizeof(first));
			if (first < 1)
				return refuse(name, "start is counted from 1");
			from[i] = (uint64_t)first - 1;
		}
	}
	return varve_reader_read_part(r, epoch, rank, name, from, count, x->base_addr);
}

void varve_fortran_reader_read_part(varve_reader *const *reader, const CFI_cdesc_t *name, const CFI_cdesc_t *x, const CFI_cdesc_t *start,
				    const int64_t *epoch, const int *rank, int *stat, CFI_cdesc_t *errmsg)
{
	int rc = read_part(*reader, name_of(name).s, x, start, epoch ? (uint64_t)*epoch : VARVE_LATEST, rank ? (uint32_t)*rank : 0);

	conclude(rc, stat, errmsg);
}
