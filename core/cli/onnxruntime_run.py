# SPDX-License-Identifier: Apache-2.0
# Runs a model once in onnxruntime for `mge compare --with onnxruntime`: python -c SCRIPT FOLDER.
# It reads FOLDER/request.json, and writes FOLDER/reply.json and FOLDER/output_N.npy.
import json
import os
import sys


def run(folder, request):
    try:
        import numpy
        import onnxruntime
    except ImportError as error:
        return {"missing": error.name or str(error)}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = request["threads"]
    options.log_severity_level = 3
    model = request["model"]
    if request["extra"]:
        # A second `graph` field adds its outputs to the first one, because protobuf merges repeated messages.
        with open(model, "rb") as first, open(request["extra"], "rb") as second:
            model = first.read() + second.read()
        options.add_session_config_entry("session.model_external_initializers_file_folder_path",
                                         os.path.dirname(os.path.abspath(request["model"])))
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        inputs = {i["name"]: numpy.load(i["file"], allow_pickle=False) for i in request["inputs"]}
        names = [o.name for o in session.get_outputs()]
        wanted = [n for n in request["outputs"] if n in names] or names
        values = session.run(wanted, inputs)
    except Exception as error:  # any exception is reported as the reply
        return {"version": onnxruntime.__version__, "error": str(error)}
    outputs = []
    for place, (name, value) in enumerate(zip(wanted, values)):
        row = {"name": name, "file": ""}
        if isinstance(value, numpy.ndarray) and value.dtype != object:
            row["file"] = os.path.join(folder, "output_%d.npy" % place)
            numpy.save(row["file"], numpy.ascontiguousarray(value).reshape(value.shape), allow_pickle=False)
        outputs.append(row)
    return {"version": onnxruntime.__version__, "outputs": outputs}


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "request.json"), encoding="utf-8") as file:
        request = json.load(file)
    with open(os.path.join(folder, "reply.json"), "w", encoding="utf-8") as file:
        json.dump(run(folder, request), file)


main()
