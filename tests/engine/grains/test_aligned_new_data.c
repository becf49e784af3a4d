// ctest: TIMEOUT 60
/* New data of regions in grains lies at multiples of a page in a file that is written past the page cache, so its pages are written from
 * where they lie. */
#include "base/pool.h"
#include "engine/lineage/catalog.h"
#include "engine/lineage/layer_file.h"
#include "support/must.h"
#include "support/place.h"
#include <fcntl.h>

enum { BYTES = 4 << 20, PAGE = 4096 };

static char store[] = "aligned-XXXXXX"; /* on a disk: in the build folder */

static bool takes_direct_writes(void)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/direct", store);
	fd = open(path, O_CREAT | O_RDWR | O_DIRECT, 0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void check(uint64_t epoch)
{
	struct vv_store_options opt = { 0 };
	struct vv_store *s = NULL;
	struct vv_layer_file *f = NULL;
	struct vv_lineage lin;
	size_t pages = 0;

	MUST(vv_store_open(store, &opt, &s) == 0 && vv_catalog_open(s, "job", false, &lin) == 0);
	MUST(vv_layer_file_open(&lin, vv_run_layer(epoch, 0), VV_LAYER_FILE_BLOCKS, &f) == 0);
	for (size_t i = 0; i < f->blocks.n; i++) {
		if (f->blocks.v[i].raw_len % PAGE)
			continue;
		MUST(f->blocks.v[i].off % PAGE == 0);
		pages += f->blocks.v[i].raw_len / PAGE;
	}
	MUST(pages >= BYTES / PAGE);
	vv_layer_file_close(f);
	vv_store_close(s);
}

int main(void)
{
	varve *v = NULL;
	uint64_t word = 1;
	uint8_t *p;

	CHECK(mkdtemp(store));
	if (!takes_direct_writes()) {
		place_remove(store);
		printf("the file system has no direct writes\n");
		return 77;
	}
	must_begin("grains");
	MUST(varve_open(store, "job", "grain=128,io=direct,codec=none,mode=sync", &v) == 0);
	p = varve_alloc(v, "p", BYTES);
	for (int epoch = 1; epoch <= 2; epoch++) {
		for (size_t i = 0; i < BYTES; i += 8, word = word * 6364136223846793005u + 1442695040888963407u)
			memcpy(p + i, &word, 8);
		MUST(varve_checkpoint(v) == 0);
		check(varve_epoch(v));
	}
	MUST(varve_close(v) == 0);
	place_remove(store);
	return 0;
}
