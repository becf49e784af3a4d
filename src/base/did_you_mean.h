/* Suggests the closest known word for an unknown one. */
#ifndef VV_BASE_DID_YOU_MEAN_H
#define VV_BASE_DID_YOU_MEAN_H

/* Returns candidate if it is close to word, and closer than best; else best. best is NULL at
 * first. */
const char *vv_did_you_mean_best(const char *word, const char *candidate, const char *best);

#endif
