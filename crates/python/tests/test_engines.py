"""Engines say and do what `tailor scan` and `tailor fix` say and do on one machine, row by row. Those that are not installed
are skipped; TAILOR_ENGINES=all makes that an error."""

import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import CHAT, FIXTURES, corpus

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

FINDING = ("line", "code", "severity", "message", "fix")


def engine(name):
    if os.environ.get("TAILOR_ENGINES") == "all":
        return importlib.import_module(name)
    return pytest.importorskip(name)


def texts():
    """Sessions of every kind: fixtures, real ones, and rows that are none."""
    paths = [path for path in FIXTURES if not (path.parent / "policy.args").exists()]
    paths = paths[:: int(os.environ.get("TAILOR_ENGINES_OF", "3"))] + [path for path in corpus() if path.stat().st_size < 200_000]
    read = [path.read_bytes() for path in paths]
    generated = [json.dumps({"messages": [*CHAT[:3], {"role": "assistant", "content": f"{n}"}]}).encode() for n in range(100)]
    return [*read, *generated, b"not JSON", b""]


class Expected:
    """What the program says of each row and makes of it."""

    def __init__(self, tailor, rows):
        self.findings, self.texts = set(), []
        for n, text in enumerate(rows):
            report, _ = tailor("scan", text)
            self.findings |= {(n, *(finding[key] for key in FINDING)) for finding in report["findings"]}
            self.texts.append(tailor("fix", text)[1] if report["findings"] else text)


@pytest.fixture(scope="session")
def data(tailor, tmp_path_factory):
    rows = texts()
    rows = [text for text in rows if is_utf8(text)]
    path = tmp_path_factory.mktemp("engines") / "in.parquet"
    table = pa.table({"id": pa.array(range(len(rows)), pa.int64()), "session": pa.array([text.decode() for text in rows])})
    pq.write_table(table, path, row_group_size=100)
    return path, table, Expected(tailor, rows)


def is_utf8(text):
    try:
        return text.decode() is not None
    except UnicodeDecodeError:
        return False


def same(expected, found, mended):
    """Both as lists of dicts, in any order."""
    own = {(finding["id"], *(finding[key] for key in FINDING)) for finding in found if finding["code"] is not None}
    assert own == expected.findings
    by_id = {row["id"]: row for row in mended}
    assert len(mended) == len(by_id) == len(expected.texts), "a row was lost, or is there twice"
    for n, text in enumerate(expected.texts):
        assert by_id[n]["session"].encode() == text, by_id[n]
    assert len({row["tailor_outcome"] for row in mended}) >= 3
    assert all(row["tailor_reason"] for row in mended if row["tailor_outcome"] in ("unreadable", "refused", "findings"))


def test_hugging_face_datasets(data, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    datasets, example = engine("datasets"), importlib.import_module("hf_datasets")
    given = datasets.Dataset.from_parquet(str(data[0]), cache_dir=str(tmp_path))
    mended = example.mend(given)
    same(data[2], example.check(given).with_format(None).to_list(), mended.with_format(None).to_list())
    assert set(example.keep(mended).with_format(None)["tailor_outcome"]) == {"clean", "fixed"}


def test_duckdb(data):
    engine("duckdb")
    example = importlib.import_module("duck")
    same(data[2], example.check(data[0]).to_pylist(), example.mend(data[0]).read_all().to_pylist())


def test_polars(data):
    polars, example = engine("polars"), importlib.import_module("polars_frames")
    frame = polars.read_parquet(data[0])
    same(data[2], example.check(frame).to_dicts(), example.mend(frame).to_dicts())


def test_ray_data(data):
    ray, example = engine("ray.data"), importlib.import_module("ray_data")
    ray = importlib.import_module("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}})
    try:
        given = ray.data.read_parquet(str(data[0]))
        same(data[2], example.check(given).take_all(), example.mend(given).take_all())
    finally:
        ray.shutdown()


CLUSTER = "a cluster of two workers"


@pytest.fixture
def cluster(tmp_path):
    """Starts a master and two workers of one core each, with JVMs of their own, when it is called: the master's address."""
    started = []

    def start(kind, *words):
        home = Path(engine("pyspark").__file__).parent
        log = tmp_path / f"{len(started)}-{kind}.log"
        command = [home / "bin/spark-class", f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1", "--webui-port", "0", *words]
        with log.open("wb") as out:
            started.append(subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=os.environ | {"SPARK_HOME": str(home)}))
        return log

    def says(log, word):
        for _ in range(1800):
            line = next((line for line in log.read_text().splitlines() if word in line), None)
            if line:
                return line
            time.sleep(0.1)
        raise TimeoutError(log.read_text())

    def run():
        address = says(start("master.Master", "--port", "0"), "Starting Spark master at").split()[-1]
        for n in range(2):
            says(start("worker.Worker", "--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / f"worker-{n}"), address), "Successfully registered")
        return address

    yield run
    for process in reversed(started):
        process.kill()
        process.wait()


@pytest.fixture(params=["local[2]"])
def spark(request, tmp_path, cluster):
    engine("pyspark")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    builder = SparkSession.builder.master(cluster() if request.param == CLUSTER else request.param).config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "64").config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.executorEnv.PYTHONPATH", os.pathsep.join(sys.path)).config("spark.local.dir", str(tmp_path))
    builder = builder.config("spark.executorEnv.PYSPARK_PYTHON", sys.executable).config("spark.sql.files.maxPartitionBytes", "200k")
    session = builder.getOrCreate()
    yield session
    session.stop()


def test_spark(data, spark):
    example = importlib.import_module("spark")
    given = spark.read.parquet(str(data[0])).repartition(4)
    found = [row.asDict() for row in example.check(given).collect()]
    same(data[2], found, [row.asDict() for row in example.mend(given).collect()])


@pytest.fixture
def bucket(monkeypatch):
    moto = engine("moto.server")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("S3_ENDPOINT", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    fs = importlib.import_module("pyarrow.fs")
    example = importlib.import_module("spark_s3")
    keys = {"access_key": "testing", "secret_key": "testing"}
    fs.S3FileSystem(endpoint_override=f"{host}:{port}", scheme="http", region="us-east-1", allow_bucket_creation=True, **keys).create_dir("sets")
    # The server keeps what an earlier test has stored.
    example.store().delete_dir_contents("sets")
    yield example.store()
    server.stop()


@pytest.mark.parametrize("spark", ["local[2,4]", CLUSTER], indirect=True)
def test_an_object_store_and_a_worker_that_is_killed(data, bucket, spark, tmp_path, monkeypatch):
    """A worker is killed in the middle of an object; Spark does it again, and no row is lost or there twice. Of a cluster it is
    a whole worker: Python, the executor above it, and the worker above that."""
    example = importlib.import_module("spark_s3")
    _, table, expected = data
    step = -(-table.num_rows // 4)
    for n in range(4):
        with bucket.open_output_stream(f"sets/in/{n}.parquet") as out:
            pq.write_table(table.slice(n * step, step), out, row_group_size=50)
    marker = str(tmp_path / "killed")
    generations = 1 if spark.sparkContext.master.startswith("local") else 4
    run = example.mend_objects("sets/out")

    def run_and_be_killed(batches):
        import signal

        import session_tailor
        import spark_s3

        spark_s3.ROWS = 20

        mend = session_tailor.mend

        def kill_worker():
            pids = [os.getpid()]
            while len(pids) < generations:
                with open(f"/proc/{pids[-1]}/stat") as stat:
                    pids.append(int(stat.read().rpartition(")")[2].split()[1]))
            for pid in reversed(pids):
                os.kill(pid, signal.SIGKILL)

        def mend_some(given):
            def some():
                for n, batch in enumerate(given):
                    if n == 1 and not os.path.exists(marker):
                        open(marker, "w").close()
                        kill_worker()
                    yield batch

            return mend(pa.RecordBatchReader.from_batches(given.schema, some()))

        session_tailor.mend = mend_some
        try:
            yield from run(batches)
        finally:
            session_tailor.mend = mend

    monkeypatch.setattr(example, "mend_objects", lambda target: run_and_be_killed)
    told = [row.asDict() for row in example.mend(spark, "sets/in", "sets/out").collect()]
    assert os.path.exists(marker)
    names = sorted(info.path for info in bucket.get_file_info(pa.fs.FileSelector("sets/out")) if info.is_file)
    assert names == [f"sets/out/{n}.parquet" for n in range(4)]
    mended = pa.concat_tables(pq.read_table(name, filesystem=bucket) for name in names).to_pylist()
    assert sorted(row["id"] for row in mended) == list(range(table.num_rows))
    for row in mended:
        assert row["session"].encode() == expected.texts[row["id"]]
    assert sum(row["rows"] for row in told) <= table.num_rows
    again = example.mend(spark, "sets/in", "sets/out").collect()
    assert again == [], "what is done is not done twice"
    bucket.delete_file("sets/out/2.parquet")
    (again,) = example.mend(spark, "sets/in", "sets/out").collect()
    assert again["object"] == "sets/in/2.parquet", "only what is not there is done"
    assert pq.read_table("sets/out/2.parquet", filesystem=bucket).num_rows == again["rows"]
