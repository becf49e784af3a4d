/* The content of a store: lineages, epochs, layers. Names are cheap to list, and records are cheap
 * to read. The newest epoch is found without reading the old ones. */
#ifndef VV_ENGINE_LINEAGE_CATALOG_H
#define VV_ENGINE_LINEAGE_CATALOG_H

#include "core/format/commit.h"
#include "engine/lineage_handle.h"
#include "core/format/name.h"
#include "core/format/run.h"
#include "store/store.h"

struct vv_provenance;

struct vv_layer_name {
	uint64_t layer; /* epoch and rank */
	uint64_t size;
};

struct vv_parity_name {
	uint64_t layer; /* epoch and rank of the layer to which it belongs */
	uint32_t ranks; /* of the epoch */
	uint64_t size;
};

struct vv_label_name {
	uint64_t epoch;
	char label[VV_NAME_LABEL_MAX + 1];
};

struct vv_listing { /* all ascending */
	uint64_t *epoch; /* committed */
	size_t n_epochs, epochs_cap;
	struct vv_layer_name *layer;
	size_t n_layers, layers_cap;
	struct vv_label_name *label; /* also of epochs without a commit: engine/lineage/label.h */
	size_t n_labels, labels_cap;
	struct vv_parity_name *parity;
	size_t n_parity, parity_cap;
};

/* Reads the lineage's record. With create, makes it if it is missing. If the record is lost but
 * there are epochs, it is recovered from their commit records. The message for VV_ENOENT names the
 * store. */
int vv_catalog_open(struct vv_store *store, const char *name, bool create, struct vv_lineage *out);
/* Makes a record with the content of another store's record. */
int vv_catalog_adopt(struct vv_store *store, const char *name, const uint8_t id[16], uint64_t created_ns,
		     struct vv_lineage *out);
/* VV_EINVAL if the supposed store is a lineage. */
int vv_catalog_check_store(struct vv_store *store);
/* The sorted names of all lineages, including those without a record. */
int vv_catalog_lineages(struct vv_store *store, struct vv_names *out);

/* Lists everything from epoch `from` on. */
int vv_catalog_list(const struct vv_lineage *lin, uint64_t from, struct vv_listing *out);
void vv_catalog_listing_fini(struct vv_listing *l);
/* The newest committed epoch below `before`; 0 if there is none. */
int vv_catalog_newest(const struct vv_lineage *lin, uint64_t before, uint64_t *epoch);
/* The highest number of an epoch, a layer or a label. The next epoch is above it. A damaged record
 * without layers is ignored. */
int vv_catalog_highest(const struct vv_lineage *lin, uint64_t *epoch);

/* The location of each rank's layer in an epoch, by its record and the listing. HERE: in this
 * store. ELSEWHERE: in another store, with all layers of its storage node. MISSING: it should be
 * here and is not. */
enum { VV_CATALOG_MISSING, VV_CATALOG_HERE, VV_CATALOG_ELSEWHERE };
int vv_catalog_locate_layers(const struct vv_listing *l, const struct vv_commit *c, uint8_t **where);
/* Returns the number of ranks, of n, with where[rank] == there. ranks: a text such as "0-2, 5". */
enum { VV_CATALOG_RANKS = 80 };
uint32_t vv_catalog_name_ranks(const uint8_t *where, uint32_t n, uint8_t there, char ranks[VV_CATALOG_RANKS]);
/* Is the layer, or the epoch, listed? */
bool vv_catalog_has_layer(const struct vv_listing *l, uint64_t layer);
bool vv_catalog_has_epoch(const struct vv_listing *l, uint64_t epoch);
/* Calls the function for every folder of epochs, until it fails. */
int vv_catalog_each_folder(const struct vv_lineage *lin, int (*fn)(struct vv_store *s, const char *dir));

/* Commits the epoch. */
int vv_catalog_put_commit(const struct vv_lineage *lin, const struct vv_commit *c);
/* Returns VV_ENOENT if there is no such epoch, and VV_EDAMAGED if its record is not intact. */
int vv_catalog_commit(const struct vv_lineage *lin, uint64_t epoch, struct vv_commit *out);

/* Is the record of an epoch gone? Then its writer has dropped it, and missing objects of the epoch
 * are no damage. The error of the thread stays. */
bool vv_catalog_is_dropped(const struct vv_lineage *lin, uint64_t epoch);
/* The time of an epoch; errors as above. */
int vv_catalog_time(const struct vv_lineage *lin, uint64_t epoch, uint64_t *time_ns);

/* Removes an epoch's commit record, and with it the epoch. Its layers stay until gc, since other
 * epochs may need them. A damaged record is removed as well. *bytes (may be NULL): the length of
 * its layers when they were written. */
int vv_catalog_drop_epoch(const struct vv_lineage *lin, uint64_t epoch, uint64_t *bytes);

#endif
