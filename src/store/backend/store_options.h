/* How vv_store_open opens a store. */
#ifndef VV_STORE_BACKEND_STORE_OPTIONS_H
#define VV_STORE_BACKEND_STORE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum vv_store_io { /* of large files in a directory */
	VV_STORE_IO_AUTO,     /* direct, if the file system can */
	VV_STORE_IO_DIRECT,   /* also of small files */
	VV_STORE_IO_BUFFERED, /* through the page cache */
};

struct vv_store_options {
	enum vv_store_io io;
	uint64_t bandwidth;      /* bytes per second, 0 = no limit */
	bool recycle;            /* write to the files of removed objects again */
	bool create;             /* create the store if it does not exist */
	const char *s3_endpoint; /* e.g. http://127.0.0.1:9000; NULL = AWS for the region */
	const char *s3_region;   /* NULL = us-east-1 */
	bool s3_path_style;
	unsigned s3_retries;     /* retries */
	uint64_t s3_part_bytes;  /* multipart part size, >= 5 MiB */
};

#endif
