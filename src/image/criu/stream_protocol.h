/* The streaming protocol of CRIU's images, on the streamer's side. CRIU connects to a socket in its
 * folder, requests images by name, and passes a pipe for each. A message is a length of 4 bytes and
 * a protobuf. */
#ifndef VV_IMAGE_CRIU_STREAM_PROTOCOL_H
#define VV_IMAGE_CRIU_STREAM_PROTOCOL_H

#include <stdbool.h>

enum { VV_STREAM_PROTOCOL_NAME = 200 };

/* Creates the socket in the folder to which criu dump (or, with serve, criu restore) will
 * connect. */
int vv_stream_protocol_listen(const char *folder, bool serve, int *out);
int vv_stream_protocol_accept(int listening, int *out);
/* Reads the name of the next image and returns 1; 0: there are no more. */
int vv_stream_protocol_request(int fd, char name[VV_STREAM_PROTOCOL_NAME]);
/* Only for a restore: reports whether the image exists. */
int vv_stream_protocol_reply(int fd, bool exists);
/* Receives the pipe of the image. */
int vv_stream_protocol_pipe(int fd, int *out);

#endif
