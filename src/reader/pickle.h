/* The values of a Python pickle, of protocols 0 to 5, as a tree. Nothing is executed or imported:
 * a call is a value with the name of its function, its arguments and its state. */
#ifndef VV_READER_PICKLE_H
#define VV_READER_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum vv_pickle_kind {
	VV_PICKLE_OTHER,  /* None, a real number, bytes, a large integer */
	VV_PICKLE_MARK,   /* of the stack; never in a value */
	VV_PICKLE_INT,
	VV_PICKLE_TEXT,
	VV_PICKLE_GLOBAL, /* a name: its last part, without the module */
	VV_PICKLE_LIST,   /* also a tuple or a set */
	VV_PICKLE_DICT,   /* keys and values in turn */
	VV_PICKLE_STORED, /* a reference to data outside of the pickle: its identity */
	VV_PICKLE_CALL,   /* function, arguments, and the state or the items, if it has them */
};

struct vv_pickle_value {
	uint8_t kind;
	uint32_t n; /* elements; bytes of text */
	union {
		int64_t number;
		const char *text; /* not terminated */
		struct {
			uint32_t first, last; /* cells */
		};
	};
};

struct vv_pickle_cell {
	uint32_t value, next; /* next: 0 behind the last */
};

struct vv_pickle { /* value 0 is VV_PICKLE_OTHER, cell 0 leads to it */
	struct vv_pickle_value *value;
	size_t n_values, values_cap;
	struct vv_pickle_cell *cell;
	size_t n_cells, cells_cap;
	uint32_t root; /* 0: none, the pickle is invalid or too long */
};

/* Reads n bytes, which must outlive the values. Fails only for lack of memory. Values that were
 * read before an invalid one remain. */
int vv_pickle_read(const uint8_t *p, size_t n, struct vv_pickle *out);
void vv_pickle_fini(struct vv_pickle *p);

static inline const struct vv_pickle_value *vv_pickle_at(const struct vv_pickle *p, uint32_t value)
{
	return &p->value[value];
}

/* Element i of a value that has elements; 0: it has none. */
uint32_t vv_pickle_element(const struct vv_pickle *p, uint32_t value, uint32_t i);
/* The value of this text key; 0: it has none among the first 64. Objects have few attributes, and a
 * hostile dictionary may be shared by very many. */
uint32_t vv_pickle_lookup(const struct vv_pickle *p, uint32_t value, const char *key);
bool vv_pickle_is(const struct vv_pickle *p, uint32_t value, const char *text);
/* The number of a value that is an integer from 0 on. */
bool vv_pickle_count(const struct vv_pickle *p, uint32_t value, uint64_t *out);

#endif
