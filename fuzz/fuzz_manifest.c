/* The input as the list of an epoch's files: as it is, and behind a right magic and each version. What is taken encodes to the same bytes, and
 * holds no name and no link that leads out of a folder. */
#include "core/format/manifest.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void insist(int true_thing)
{
	if (!true_thing)
		abort();
}

static void use(const uint8_t *p, size_t n)
{
	struct vv_manifest m = { 0 };
	struct vv_buf b = { 0 };
	char words[64];

	if (vv_manifest_get(&m, p, n) == 0) {
		vv_manifest_put(&m, &b);
		insist(b.n == n && memcmp(b.p, p, n) == 0);
	}
	for (size_t i = 0; i < m.n_files; i++)
		insist(vv_manifest_is_name(m.file[i].name) && m.file[i].name[0] != '/' && !strstr(m.file[i].name, "/../"));
	for (size_t i = 0; i < m.n_entries; i++) {
		const struct vv_manifest_entry *e = &m.entry[i];

		insist(vv_manifest_is_name(e->name));
		insist(e->type != VV_MANIFEST_LINK || vv_manifest_is_target(e->name, e->target));
	}
	for (size_t i = 0; i < m.n_kinds; i++) {
		vv_recipe_words(&m.kind[i].recipe, words, sizeof(words));
		insist(strlen(words) < sizeof(words));
	}
	vv_manifest_fini(&m);
	vv_buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t head[12] = { 'V', 'A', 'R', 'V', 'E', 'F', 'I', 'L', 1, 0, 0, 0 };
	uint8_t *copy = malloc(sizeof(head) + size);

	use(data, size);
	insist(copy != NULL);
	for (uint8_t version = 1; version <= 2; version++) {
		head[8] = version;
		memcpy(copy, head, sizeof(head));
		if (size)
			memcpy(copy + sizeof(head), data, size);
		use(copy, sizeof(head) + size);
	}
	free(copy);
	return 0;
}
