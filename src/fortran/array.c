/* Arrays of Fortran and their descriptors: address, type and shape.
 *
 * A region is memory that is read long after the call that declared it. An array is therefore used
 * in place, or refused. A section with gaps would have to be copied, and the copy would be gone. */
#include <ISO_Fortran_binding.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <varve/varve_comm.h>

/* Arguments that may be NULL are optional. */
void varve_fortran_protect(varve *const *session, const CFI_cdesc_t *name, const CFI_cdesc_t *x, int *stat, CFI_cdesc_t *errmsg);
void varve_fortran_restart_region(varve *const *session, const CFI_cdesc_t *name, const CFI_cdesc_t *x, const int64_t *epoch,
				  int *stat, CFI_cdesc_t *errmsg);
void varve_fortran_give_up(void); /* varve.f90's */

enum { REFUSED = -1, LONGEST = 512 };

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
	char words[LONGEST / 2];

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

/* The type of bytes is unknown, so it is not checked. */
static int check_type(varve *v, uint64_t epoch, const char *name, int type)
{
	struct varve_region_info info;
	char message[LONGEST];
	int rc = varve_region(v, epoch, name, &info);

	if (rc < 0 || (int)info.type == type || info.type == VARVE_BYTES || type == VARVE_BYTES)
		return rc;
	snprintf(message, sizeof(message), "region '%s' was saved as another type than that of the variable it is read into", name);
	return varve_fail(VARVE_EMISMATCH, message);
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
