#include "engine/upkeep/last_verify.h"
#include "base/err.h"
#include "base/mem.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 4 * 21 + 1 };

void vv_last_verify_write(const struct vv_lineage *lin, const struct vv_last_verify *r)
{
	char object[VV_NAME_MAX], text[TEXT];

	vv_name_verified(object, lin->name);
	snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", r->time_ns, r->problems, r->epochs, r->newest);
	(void)vv_store_put(lin->store, object, text, strlen(text));
	vv_err_clear();
}

struct vv_last_verify vv_last_verify_read(const struct vv_lineage *lin)
{
	struct vv_last_verify r = { 0 };
	char object[VV_NAME_MAX], text[TEXT] = "", end = 0;
	uint8_t *bytes = NULL;
	size_t n = 0;

	vv_name_verified(object, lin->name);
	if (vv_store_get(lin->store, object, sizeof(text) - 1, &bytes, &n) == 0)
		memcpy(text, bytes, n);
	vv_mem_free(bytes);
	vv_err_clear();
	if (sscanf(text, "%20" SCNu64 " %20" SCNu64 " %20" SCNu64 " %20" SCNu64 "%c", &r.time_ns, &r.problems, &r.epochs, &r.newest, &end) != 5 || end != '\n')
		return (struct vv_last_verify){ 0 };
	return r;
}
