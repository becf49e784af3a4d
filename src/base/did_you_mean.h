/* Words that were meant: the closest of several to one that nobody knows. */
#ifndef VV_BASE_DID_YOU_MEAN_H
#define VV_BASE_DID_YOU_MEAN_H

/* best (NULL at first), or candidate if that is close enough to word to be what was meant, and closer. */
const char *vv_did_you_mean_best(const char *word, const char *candidate, const char *best);

#endif
