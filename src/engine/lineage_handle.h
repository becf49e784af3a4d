/* A handle of one lineage of a store, for all code that reads or writes the lineage.
 * lineage/catalog.h opens it. */
#ifndef VV_ENGINE_LINEAGE_HANDLE_H
#define VV_ENGINE_LINEAGE_HANDLE_H

#include "core/format/name.h"
#include "store/store.h"

struct vv_provenance;

struct vv_lineage {
	struct vv_store *store;
	char name[VV_NAME_LINEAGE_MAX + 1];
	uint8_t id[16];
	uint64_t created_ns;
	/* references between its layers; lives as long as the store */
	struct vv_provenance *provenance;
	/* Of this process, which alone reads the layers of this rank; 0 ranks: no session has the
	 * handle. */
	uint32_t rank, ranks;
	bool recovered; /* its record is missing or damaged; the id is from a commit record */
};

#endif
