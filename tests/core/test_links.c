/* Hard links: names of one file, by device and inode. */
#include "core/format/file_links.h"
#include "vv_test.h"

static size_t first_of(const struct vv_link *v, size_t n, size_t file)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].file == file)
			return v[i].first;
	return SIZE_MAX;
}

int main(void)
{
	static const uint64_t inode[][2] = {{1, 7},	     {2, 7}, {1, 7},	      {1, 8},
					    {UINT64_MAX, 0}, {1, 7}, {0, UINT64_MAX}, {1, 8}};
	static const size_t first[] = {0, 1, 0, 3, 4, 0, 6, 3};
	struct vv_link v[8];

	for (size_t i = 0; i < 8; i++)
		v[7 - i] = (struct vv_link){.dev = inode[i][0], .ino = inode[i][1], .file = i};
	vv_file_links_group(v, 8);
	for (size_t i = 0; i < 8; i++)
		CHECK_EQ(first_of(v, 8, i), first[i]);
	vv_file_links_group(NULL, 0);
	return 0;
}
