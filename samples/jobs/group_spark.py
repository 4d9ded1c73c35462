"""Writes ratings anew so that each user is whole in one file, as a plan needs them:

    spark-submit group_spark.py INPUT FOLDER FILES     then: pack-sparse FOLDER/part-*.csv --plan TASKS …

INPUT is Parquet or, by its name, CSV with a header. Spark writes no file for a partition without rows. The order of a
user's ratings is lost: keep a column of times where --duplicates or the split needs it."""
import sys

from pyspark.sql import SparkSession

USER = "user"
source, folder, files = sys.argv[1:]
spark = SparkSession.builder.appName("group by user").getOrCreate()
ratings = spark.read.csv(source, header=True) if ".csv" in source else spark.read.parquet(source)
ratings.repartition(int(files), USER).write.csv(folder, header=True)
