/* A process dies after it made a folder, and before that was durable. The next one that stores below the folder makes it durable. */
#include "store/dir/dir.h"
#include "store/store.h"
#include "support/place.h"
#include "support/powerfs.h"
#include "vv_test.h"
#include <stdbool.h>
#include <unistd.h>

static struct vv_store *open_store(const char *path)
{
	struct vv_store_options opt = { .create = true };
	struct vv_store *s = NULL;

	CHECK_EQ(vv_store_open(path, &opt, &s), 0);
	return s;
}

/* The first process dies at call n. False: it needed fewer. */
static bool die_at(long n)
{
	char disk[PLACE_MAX], after[PLACE_MAX], object[PLACE_MAX];
	struct vv_store *s;
	bool died;

	place_remove(place_path(disk, "disk"));
	place_remove(place_path(after, "after"));
	place_make_dir(disk);
	powerfs_start(disk);
	s = open_store(disk);
	powerfs_die(n);
	vv_store_put(s, "a/b/first", "1", 1);
	died = powerfs_died();
	powerfs_die(0);
	vv_store_close(s);
	s = open_store(disk);
	CHECK_EQ(vv_store_put(s, "a/c/second", "2", 1), 0);
	vv_store_close(s);
	powerfs_survivors(POWER_NOTHING, 0, after);
	CHECK_EQ(access(place_path(object, "after/a/c/second"), F_OK), 0);
	return died;
}

int main(void)
{
	long n = 1;

	vv_dir_set_fs(powerfs());
	while (die_at(n))
		n++;
	CHECK(n > 5);
	return 0;
}
