/* Declares the functions that run the verbs. There is one function for each verb, in a file of its own. It gets the
 * checked command line and gives the exit status. */
#ifndef FR_TOOLS_CLI_VERBS_H
#define FR_TOOLS_CLI_VERBS_H

#include "tools/cli/options.h"

int fr_verb_generate(const fr_arguments *args);
int fr_verb_chat(const fr_arguments *args);
int fr_verb_batch(const fr_arguments *args);
int fr_verb_features(const fr_arguments *args);
int fr_verb_serve(const fr_arguments *args);
int fr_verb_embed(const fr_arguments *args);
int fr_verb_rerank(const fr_arguments *args);
int fr_verb_logits(const fr_arguments *args);
int fr_verb_perplexity(const fr_arguments *args);
int fr_verb_imatrix(const fr_arguments *args);
int fr_verb_tokenize(const fr_arguments *args);
int fr_verb_trim_head(const fr_arguments *args);
int fr_verb_template(const fr_arguments *args);
int fr_verb_models(const fr_arguments *args);
int fr_verb_inspect(const fr_arguments *args);
int fr_verb_verify(const fr_arguments *args);
int fr_verb_quantize(const fr_arguments *args);
int fr_verb_pack(const fr_arguments *args);
int fr_verb_synth(const fr_arguments *args);
int fr_verb_bench(const fr_arguments *args);
int fr_verb_report(const fr_arguments *args);

#endif
