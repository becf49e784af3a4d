/* docs/dedup.md word for word, as naive as possible: what a sieve must give, to the bit; and a restorer, which rebuilds what was seen from
 * pieces and data alone. Want of memory ends the program. */
#ifndef VV_TEST_SIEVE_MODEL_H
#define VV_TEST_SIEVE_MODEL_H

#include "space/space.h"

struct sieve_record { /* of a pass; all zero is empty */
	uint32_t ordinal;
	struct vv_piece *piece;
	size_t n, cap;
	uint8_t *data;
	size_t len, data_cap;
	struct vv_sieve_counts counts;
};

/* The same pointer; the program ends where it is none. */
void *sieve_need(void *p);

void sieve_record_fini(struct sieve_record *r);
void sieve_record_add_pieces(struct sieve_record *r, const struct vv_piece *piece, size_t n);
void sieve_record_add_data(struct sieve_record *r, const void *p, size_t len);

struct sieve_model;

struct sieve_model *sieve_model_new(const struct vv_sieve_options *opt);
void sieve_model_free(struct sieve_model *m);
void sieve_model_pass(struct sieve_model *m, struct vv_span *span, size_t n, uint32_t ordinal, struct sieve_record *out);
void sieve_model_adopt(struct sieve_model *m, struct vv_span *span, size_t n, uint32_t ordinal, const struct vv_number_range *usable,
		       size_t n_usable);
void sieve_model_readopt(struct sieve_model *m, uint32_t ordinal, const struct vv_number_range *usable, size_t n_usable);
void sieve_model_forget(struct sieve_model *m, uint32_t ordinal);

/* What a set holds: the whole grains of its regions, by number. */
struct sieve_state {
	uint32_t chunk, end;
	struct vv_span *span; /* id, first and n count; p is the region's part of `bytes` */
	size_t n;
	uint8_t *bytes; /* end * chunk; zero where no grain is */
};

void sieve_state_take(struct sieve_state *st, uint32_t chunk, const struct vv_span *span, size_t n); /* copies */
void sieve_state_fini(struct sieve_state *st);
int sieve_state_equal(const struct sieve_state *a, const struct sieve_state *b);
/* st, with the layout of the spans: what r makes of it, `before` being the state before (NULL: none), and `history` all records so far of which data
 * may be used, r itself too. */
void sieve_state_restore(struct sieve_state *st, const struct sieve_state *before, const struct vv_span *span, size_t n,
			 uint32_t chunk, const struct sieve_record *r, const struct sieve_record *history, size_t n_history);

#endif
