/* The streaming protocol of CRIU's images, from the streamer's side: CRIU connects to a socket in its folder, asks for images by name, and hands over
 * a pipe for each. Messages are a length of 4 bytes and a protobuf. */
#ifndef VV_IMAGE_CRIU_STREAM_PROTOCOL_H
#define VV_IMAGE_CRIU_STREAM_PROTOCOL_H

#include <stdbool.h>

enum { VV_STREAM_PROTOCOL_NAME = 200 };

/* The socket that criu dump (or, with serve, criu restore) will look for in the folder. */
int vv_stream_protocol_listen(const char *folder, bool serve, int *out);
int vv_stream_protocol_accept(int listening, int *out);
/* The name of the next image: 1; 0: there is none any more. */
int vv_stream_protocol_request(int fd, char name[VV_STREAM_PROTOCOL_NAME]);
/* In a restore it wants to know whether there is such an image. */
int vv_stream_protocol_reply(int fd, bool exists);
/* The image's pipe. */
int vv_stream_protocol_pipe(int fd, int *out);

#endif
